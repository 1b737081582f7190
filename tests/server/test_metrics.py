"""``/metrics``: valid, complete, and in agreement with what happened."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from parakeet_models.bundle import Bundle
from support.random_bundle import noise
from support.server_process import running_server
from support.sockets import END, http, session, wait_until_idle

ROOT = Path(__file__).parents[2]

PCM = (noise(2.0, 1) * 32767).astype("<i2").tobytes()


@pytest.fixture(scope="module")
def metered_url(tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle) -> Iterator[str]:
    """A server for all tests here, which look at differences."""
    log = tmp_path_factory.mktemp("metered") / "log"
    with running_server(log, "--model", str(random_bundle.directory), "--max-streams", "2") as url:
        yield url


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


async def test_metrics_say_what_happened(metered_url: str) -> None:
    before = await scrape(metered_url)
    assert before["parakeet_live_ready"] == 1
    assert before["parakeet_live_state{state=ready}"] == 1
    assert before["parakeet_live_streams_max"] == 2
    assert before["parakeet_live_streams_active"] == 0
    assert before["parakeet_live_real_time_factor"] > 0
    await session(metered_url, [PCM, END])
    after = await scrape(metered_url)

    def rise(name: str) -> float:
        return after[f"parakeet_live_{name}"] - before[f"parakeet_live_{name}"]

    assert rise("recognised_audio_seconds_total") >= 2
    assert rise("lane_busy_seconds_total") > 0
    assert rise("batch_failures_total") == 0
    batches = rise("batch_seconds_count")
    assert batches > 0
    assert rise("batch_size_sum") >= batches == rise("batch_size_count")
    assert rise("batch_seconds_bucket{le=+Inf}") == batches


async def test_histograms_are_cumulative(metered_url: str) -> None:
    await session(metered_url, [PCM, END])
    text = (await asyncio.to_thread(http, metered_url, "/metrics")).text
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


async def test_openmetrics_is_spoken_to_those_who_ask(metered_url: str) -> None:
    url = httpx.URL(metered_url).copy_with(scheme="http", path="/metrics")
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = await asyncio.to_thread(httpx.get, url, headers=headers)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


async def test_sessions_and_utterances_are_counted(metered_url: str) -> None:
    before = await scrape(metered_url)
    done = await session(metered_url, [PCM, '{"type":"finalize"}', PCM, END])
    refused = await session(f"{metered_url}?speed=2", [])
    assert refused.messages[0]["code"] == "bad_parameter"
    await wait_until_idle(metered_url)
    after = await scrape(metered_url)

    def rise(name: str) -> float:
        return after.get(f"parakeet_live_{name}", 0) - before.get(f"parakeet_live_{name}", 0)

    assert rise("sessions_opened_total") == 1
    assert rise("sessions_closed_total{code=1000}") == 1
    assert rise("refusals_total{code=bad_parameter}") == 1
    assert rise("audio_seconds_total") == pytest.approx(4.0)
    assert rise("partials_dropped_total") == 0
    for reason in {final["reason"] for final in done.of("final")}:
        said = [final for final in done.of("final") if final["reason"] == reason and final["text"]]
        assert rise(f"finals_total{{reason={reason}}}") == len(said)
    measured = [final for final in done.of("final") if final["timing"]]
    assert rise("final_total_seconds_count") == len(measured) > 0
    total = sum(final["timing"]["total_ms"] for final in measured) / 1000
    assert rise("final_total_seconds_sum") == pytest.approx(total)


# The board and the alerts


def names_in(expressions: str) -> set[str]:
    return set(re.findall(r"\b(?:parakeet_live|process)_\w+", expressions))


@pytest.mark.parametrize("file", ["parakeet-live.json", "alerts.yaml"])
async def test_every_metric_that_is_looked_at_exists(metered_url: str, file: str) -> None:
    await session(metered_url, [PCM, END])
    await session(f"{metered_url}?speed=2", [])
    there = {name.partition("{")[0] for name in await scrape(metered_url)}
    text = (ROOT / "docs" / "grafana" / file).read_text(encoding="utf-8")
    if file.endswith(".json"):
        targets = [target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]]
        assert all(targets)
        text = "\n".join(targets)
    assert len(names_in(text)) >= 3
    assert names_in(text) - there == set()


def test_the_board_is_laid_out_without_overlaps() -> None:
    board = json.loads((ROOT / "docs" / "grafana" / "parakeet-live.json").read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
