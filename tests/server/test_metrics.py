"""``/metrics``: valid, complete, and in agreement with what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
from prometheus_client.parser import text_string_to_metric_families

from support.random_bundle import noise
from support.sockets import END, http, session

PCM = (noise(2.0, 1) * 32767).astype("<i2").tobytes()


def samples(text: str) -> dict[str, float]:
    """Every sample by name and labels: ``finals_total{reason=end}``."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


async def scrape(url: str) -> Mapping[str, float]:
    answer: httpx.Response = await asyncio.to_thread(http, url, "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return samples(answer.text)


async def test_metrics_say_what_happened(small_server_url: str) -> None:
    before = await scrape(small_server_url)
    assert before["parakeet_live_ready"] == 1
    assert before["parakeet_live_state{state=ready}"] == 1
    assert before["parakeet_live_streams_max"] == 2
    assert before["parakeet_live_streams_active"] == 0
    assert before["parakeet_live_real_time_factor"] > 0
    await session(small_server_url, [PCM, END])
    after = await scrape(small_server_url)

    def rise(name: str) -> float:
        return after[f"parakeet_live_{name}"] - before[f"parakeet_live_{name}"]

    assert rise("recognised_audio_seconds_total") >= 2
    assert rise("lane_busy_seconds_total") > 0
    assert rise("batch_failures_total") == 0
    batches = rise("batch_seconds_count")
    assert batches > 0
    assert rise("batch_size_sum") >= batches == rise("batch_size_count")
    assert rise("batch_seconds_bucket{le=+Inf}") == batches


async def test_histograms_are_cumulative(small_server_url: str) -> None:
    await session(small_server_url, [PCM, END])
    text = (await asyncio.to_thread(http, small_server_url, "/metrics")).text
    histograms = [family for family in text_string_to_metric_families(text) if family.type == "histogram"]
    assert len(histograms) >= 4
    for family in histograms:
        buckets = [
            (float(sample.labels["le"]), sample.value)
            for sample in family.samples
            if sample.name.endswith("_bucket")
        ]
        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1][0] == float("inf")
        assert len(buckets) <= 20


async def test_openmetrics_is_spoken_to_those_who_ask(small_server_url: str) -> None:
    url = httpx.URL(small_server_url).copy_with(scheme="http", path="/metrics")
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = await asyncio.to_thread(httpx.get, url, headers=headers)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
