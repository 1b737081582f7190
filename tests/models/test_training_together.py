"""Several training processes keep one model: the mean of their gradients, the sum of their times, one end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import torch.multiprocessing

from parakeet_models.training.clips import SAMPLE_RATE, Clip, write_shard
from parakeet_models.training.parallel import Team
from parakeet_models.training.run import Run, train

SIZE = 2


def _share(rank: int, folder: Path) -> None:
    team = Team(rank, SIZE, folder / "rendezvous")
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    team.follow(model)
    for parameter in model[
        0
    ].parameters():  # the second layer has no gradient, as a phase of the training may have it
        parameter.grad = torch.full_like(parameter, 1.0 + rank)
    numbers = team.share(model.parameters(), (10.0 * rank, 1.0))
    torch.save(
        {
            "weights": model.state_dict(),
            "gradients": [None if p.grad is None else p.grad for p in model.parameters()],
            "numbers": numbers,
        },
        folder / f"{rank}.pt",
    )
    team.leave()


def test_a_team_has_the_same_weights_the_mean_gradient_and_the_sum_of_the_numbers(tmp_path: Path) -> None:
    torch.multiprocessing.start_processes(_share, (tmp_path,), SIZE)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(SIZE))
    assert all(torch.equal(first["weights"][name], second["weights"][name]) for name in first["weights"])
    for found in (first, second):
        assert [g is None for g in found["gradients"]] == [False, False, True, True]
        assert all(bool((g == 1.5).all()) for g in found["gradients"] if g is not None)
        assert found["numbers"] == [10.0, 2.0]


def test_one_alone_keeps_its_gradients() -> None:
    model = torch.nn.Linear(2, 1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    assert Team().share(model.parameters(), (3.0,)) == [3.0]
    assert all(bool((p.grad == 1).all()) for p in model.parameters() if p.grad is not None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with clips of tones, and recordings of a "real" speaker."""
    noise = np.random.default_rng(1)
    for folder in ("real", "clips/toy"):
        (tmp_path / folder).mkdir(parents=True)
    time = np.arange(int(0.3 * SAMPLE_RATE)) / SAMPLE_RATE
    tones = [
        (0.3 * np.sin(2 * np.pi * (300 + 200 * i) * time) * np.hanning(len(time))).astype(np.float32)
        + np.float32(0.001) * noise.standard_normal(len(time)).astype(np.float32)
        for i in range(3)
    ]
    texts = ["one", "two", "yes"]
    write_shard(
        tmp_path / "clips/toy/0000.json",
        [Clip(t, w, "toy", "toy", kind="word") for t, w in zip(tones, texts, strict=True)],
    )
    lines = []
    for tone, text in zip(tones, texts, strict=True):
        soundfile.write(tmp_path / f"real/{text}.wav", tone, SAMPLE_RATE)
        lines.append(json.dumps({"audio": f"{text}.wav", "text": text, "speaker": "x", "kind": "digit"}))
    (tmp_path / "real/manifest.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_a_run_of_two_processes_ends_and_can_be_gone_on_with_by_one(work: Path) -> None:
    first = Run(work / "real", work, hours=0.001)
    train(first, processes=2)
    state = torch.load(work / "checkpoint.pt", weights_only=True)
    assert state["step"] >= 1
    assert state["elapsed_s"] >= 0.001 * 3600
    train(Run(work / "real", work, hours=0.0015))
    assert torch.load(work / "checkpoint.pt", weights_only=True)["step"] > state["step"]


def test_a_process_that_fails_ends_the_run(work: Path) -> None:
    (work / "real/manifest.jsonl").write_text(
        json.dumps({"audio": "gone.wav", "text": "one", "speaker": "x", "kind": "digit"})
    )
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match=r"gone\.wav"):
        train(Run(work / "real", work, hours=0.001), processes=2)
