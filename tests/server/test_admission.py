"""Who gets a stream: the rule without sockets."""

from __future__ import annotations

import random

from parakeet_live.web.admission import (
    LONGEST_RETRY_SECONDS,
    RETRY_AFTER_SECONDS,
    Admission,
    Standing,
    Ticket,
)


class Client:
    """A client at the door, and how often it was told something."""

    def __init__(self, admission: Admission) -> None:
        self.told = 0
        self.ticket = admission.arrive(self.tell)

    def tell(self) -> None:
        self.told += 1

    @property
    def standing(self) -> Standing | None:
        return self.ticket.standing if self.ticket else None


def ticket_of(client: Client) -> Ticket:
    assert client.ticket is not None
    return client.ticket


def test_first_come_first_served() -> None:
    admission = Admission(2, 2)
    clients = [Client(admission) for _ in range(5)]
    assert [client.standing for client in clients] == [
        Standing.ADMITTED, Standing.ADMITTED, Standing.WAITING, Standing.WAITING, None,
    ]  # fmt: skip
    assert (admission.in_use, admission.waiting, admission.left) == (2, 2, 0)
    assert [admission.position(ticket_of(client)) for client in clients[2:4]] == [1, 2]
    admission.leave(ticket_of(clients[1]), 1.0)
    assert clients[2].standing is Standing.ADMITTED
    assert clients[2].told == clients[3].told == 1
    assert admission.position(ticket_of(clients[3])) == 1


def test_who_is_tired_of_waiting_leaves_the_queue() -> None:
    admission = Admission(1, 3)
    clients = [Client(admission) for _ in range(4)]
    admission.leave(ticket_of(clients[2]), 1.0)
    assert admission.position(ticket_of(clients[3])) == 2
    admission.leave(ticket_of(clients[2]), 2.0)  # a second time
    assert (admission.in_use, admission.waiting) == (1, 2)


def test_nobody_is_admitted_while_held() -> None:
    admission = Admission(2, 2)
    first = Client(admission)
    admission.hold(True)
    assert admission.left == 0
    second = Client(admission)
    assert (first.standing, second.standing) == (Standing.ADMITTED, Standing.WAITING)
    admission.leave(ticket_of(first), 1.0)
    assert second.standing is Standing.WAITING
    admission.hold(False)
    assert second.standing is Standing.ADMITTED


def test_a_closed_pool_sends_everyone_in_the_queue_away() -> None:
    admission = Admission(1, 2)
    inside, waiting = Client(admission), Client(admission)
    admission.close()
    assert (inside.standing, waiting.standing) == (Standing.ADMITTED, Standing.GONE)
    assert Client(admission).ticket is None
    admission.leave(ticket_of(inside), 1.0)
    assert admission.in_use == 0


def test_waiting_times_follow_the_rate_at_which_streams_end() -> None:
    admission = Admission(4, 10)
    inside = [Client(admission) for _ in range(4)]
    assert admission.estimated_wait(1, 0.0) is None
    assert admission.retry_after(0.0) == RETRY_AFTER_SECONDS
    for number, client in enumerate(inside):
        admission.leave(ticket_of(client), 10.0 + 2 * number)
    assert admission.estimated_wait(1, 18.0) == 2.0
    assert admission.estimated_wait(3, 18.0) == 6.0
    assert admission.estimated_wait(1, 50.0) == 10.0  # nothing has ended for long
    assert admission.retry_after(18.0) == 2
    assert admission.retry_after(1e6) == LONGEST_RETRY_SECONDS


def test_no_history_makes_it_forget_or_invent_a_place() -> None:
    rng = random.Random(3)
    admission = Admission(3, 4)
    present: list[Client] = []
    for step in range(5000):
        choice = rng.random()
        if choice < 0.45:
            present.append(Client(admission))
        elif choice < 0.5:
            admission.hold(rng.random() < 0.5)
        elif present:
            client = present.pop(rng.randrange(len(present)))
            if client.ticket:
                admission.leave(client.ticket, float(step))
        standings = [client.standing for client in present]
        assert admission.in_use == standings.count(Standing.ADMITTED) <= 3
        assert admission.waiting == standings.count(Standing.WAITING) <= 4
        assert admission.held or admission.in_use == 3 or admission.waiting == 0
