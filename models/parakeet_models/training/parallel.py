"""Several processes, one model: each works on batches of its own, and every step uses the mean of their gradients.

On a CPU that is the better use of two cores: a single process with two threads spends its time at barriers. All
processes hold the same weights at every step, bit for bit, as they start from the same and apply the same gradient.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

LONGEST_WAIT = timedelta(hours=1)
"""How long processes wait for one another; the first one evaluates while the others wait."""


class Team:
    """The processes that train together; a team of one needs no communication."""

    def __init__(self, rank: int = 0, size: int = 1, rendezvous: Path | None = None) -> None:
        """`rank` counts from 0, the process that reports and saves; `rendezvous` is a file that does not exist yet,
        the same for all."""
        self.rank, self.size = rank, size
        if size > 1:
            os.environ.setdefault(
                "GLOO_SOCKET_IFNAME", "lo"
            )  # all on this machine, whatever its name resolves to
            store = dist.FileStore(str(rendezvous), size)  # type: ignore[no-untyped-call]
            dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=LONGEST_WAIT)

    @property
    def leads(self) -> bool:
        """Whether this process reports, evaluates and saves."""
        return self.rank == 0

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        """Take over the leading process's parameters."""
        if self.size > 1:
            for parameter in model.parameters():
                dist.broadcast(parameter.data, src=0)

    @torch.no_grad()
    def share(self, parameters: Iterable[nn.Parameter], numbers: Sequence[float]) -> list[float]:
        """Replace the gradients by their mean over the team; returns the sums of `numbers`.

        All processes must have gradients for the same parameters.
        """
        if self.size == 1:
            return list(numbers)
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([*(g.reshape(-1) for g in gradients), torch.tensor(numbers, dtype=torch.float32)])
        dist.all_reduce(flat)
        place = 0
        for gradient in gradients:
            part = flat[place : place + gradient.numel()]
            gradient.copy_(part.view_as(gradient)).div_(self.size)
            place += gradient.numel()
        return flat[place:].tolist()

    def leave(self) -> None:
        """Wait for the others and end the communication."""
        if self.size > 1:
            dist.barrier()
            dist.destroy_process_group()
