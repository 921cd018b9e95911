"""Places of connections: limits for all and for each address, and the reserve."""

from __future__ import annotations

from portbook.doors.http.server.connection_limits_deadlines_and_overload import (
    Admission,
    ConnectionLimits,
    Place,
    is_served_by_reserve,
)
from portbook.doors.http.server.peer_address import PeerAddresses

HERE = "127.0.0.1"
FAR = "203.0.113.9"


class OpenConnection:
    """A connection that gives way if it is asked."""

    def __init__(self, admission: Admission, address: str = HERE) -> None:
        self._admission, self._address = admission, address
        self.is_open = True
        self.place = admission.place(self, address)

    def rest(self) -> None:
        self._admission.idle[self] = None

    def give_way(self) -> None:
        self.is_open = False
        self.leave()

    def leave(self) -> None:
        self._admission.leave(self, self.place, self._address)
        self.place = Place.NONE


def admission(**limits: int) -> Admission:
    return Admission(ConnectionLimits(**limits), PeerAddresses())


def test_the_connection_that_was_idle_longest_gives_way_to_the_next() -> None:
    door = admission(most=2, reserve=1)
    first, second = OpenConnection(door), OpenConnection(door)
    second.rest()
    first.rest()
    assert OpenConnection(door).place is Place.USUAL
    assert (first.is_open, second.is_open) == (True, False)


def test_while_all_are_busy_the_next_is_of_the_reserve_and_its_oldest_gives_way() -> None:
    door = admission(most=1, reserve=2)
    busy = OpenConnection(door)
    reserve = [OpenConnection(door) for _ in range(3)]
    assert busy.is_open
    assert [guest.is_open for guest in reserve] == [False, True, True]
    assert reserve[2].place is Place.RESERVE
    busy.leave()
    assert OpenConnection(door).place is Place.USUAL


def test_one_address_has_a_limit_and_loopback_has_none() -> None:
    door = admission(most=10, reserve=1, per_address=2)
    far = [OpenConnection(door, FAR) for _ in range(3)]
    assert [guest.place for guest in far] == [Place.USUAL, Place.USUAL, Place.NONE]
    assert [OpenConnection(door).place for _ in range(3)] == [Place.USUAL] * 3
    far[0].leave()
    assert OpenConnection(door, FAR).place is Place.USUAL


def test_whoever_got_no_place_frees_none() -> None:
    door = admission(most=2, reserve=1, per_address=1)
    OpenConnection(door, FAR)
    for _ in range(5):
        OpenConnection(door, FAR).leave()
    assert OpenConnection(door, FAR).place is Place.NONE
    assert [OpenConnection(door).place for _ in range(2)] == [Place.USUAL, Place.RESERVE]


def test_a_client_cannot_take_more_places_with_more_of_its_own_addresses() -> None:
    door = admission(per_address=2)
    mine = [OpenConnection(door, f"2001:db8::{number}") for number in range(1, 4)]
    assert [guest.place for guest in mine] == [Place.USUAL, Place.USUAL, Place.NONE]
    assert OpenConnection(door, "2001:db8:0:1::1").place is Place.USUAL
    mine[0].leave()
    assert OpenConnection(door, "2001:db8::4").place is Place.USUAL


def test_loopback_and_proxies_are_not_counted() -> None:
    door = Admission(ConnectionLimits(per_address=1), PeerAddresses(["10.0.0.0/8"]))
    for address in (HERE, "::1", "10.9.9.9"):
        assert [door.count(address) for _ in range(3)] == [True] * 3
    assert [door.count(FAR) for _ in range(3)] == [True, False, False]


def test_the_addresses_of_one_customer_are_counted_together() -> None:
    door = admission(per_address=1)
    counted = [door.count(f"2001:db8:0:{net}") for net in ("1::1", "1:ffff::2", "2::1")]
    assert counted == [True, False, True]


def test_the_reserve_is_for_health_checks_and_operators() -> None:
    paths = ["/livez", "/health", "/readyz", "/approvals/x", "/mcp", "/", "/execute"]
    assert [is_served_by_reserve(path) for path in paths] == [True] * 4 + [False] * 3
