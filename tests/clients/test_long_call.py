"""A call with cuts ends with the transcript of an undisturbed one; ``support.long_call`` does the same for an hour."""

from __future__ import annotations

from support.long_call import compare


async def test_call_with_cuts(server_url: str) -> None:
    quiet, cut = await compare(server_url, minutes=2, cuts=4, seed=3)
    assert len(quiet.texts) >= 20
    assert cut.results == quiet.results
    assert cut.reconnected >= 1
    assert cut.restarted == 0
