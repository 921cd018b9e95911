"""What the processes of one server offer: served where no process has a definition that is withheld."""

from __future__ import annotations

from typing import Any, cast

from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.session_isolation import JudgedOffer, ProcessOffers
from portbook.upstreams.trust_by_lock import Judgement, Withheld

ONE, OTHER = object(), object()


def judged(served: str = "", withheld: str = "") -> JudgedOffer:
    def tools(names: str) -> tuple[ObservedDefinition, ...]:
        return tuple(ObservedDefinition("s", "tool", name, {"name": name}) for name in names)

    held = tuple(Withheld(each, cast("Any", None)) for each in tools(withheld))
    return JudgedOffer(Offer("s", tools(served + withheld)), Judgement(tools(served), held))


def offered(*taken: tuple[object, JudgedOffer]) -> ProcessOffers:
    offers = ProcessOffers(DeclaredUpstream("s", "stdio"))
    for process, offer in taken:
        offers.take(process, offer)
    return offers


def names(offers: ProcessOffers) -> tuple[str, str]:
    found = offers.judgement()
    served = "".join(sorted(each.name for each in found.served))
    return served, "".join(sorted(each.observed.name for each in found.withheld))


def test_what_any_process_has_changed_is_withheld_for_all() -> None:
    assert names(offered((ONE, judged("ab")), (OTHER, judged("a", "b")))) == ("a", "b")
    assert names(offered((ONE, judged("a", "b")), (OTHER, judged("ab")))) == ("a", "b")


def test_with_the_process_that_changed_it_the_change_is_gone() -> None:
    offers = offered((ONE, judged("ab")), (OTHER, judged("a", "b")))
    assert offers.end(OTHER)
    assert names(offers) == ("ab", "")


def test_what_the_last_process_offered_stays_until_the_next_begins() -> None:
    offers = offered((ONE, judged("a", "b")))
    assert not offers.end(ONE)
    assert names(offers) == ("a", "b")
    offers.take(OTHER, judged("ab"))
    assert names(offers) == ("ab", "")


def test_a_process_that_never_said_what_it_offers_changes_nothing_by_its_end() -> None:
    assert not offered((ONE, judged("a"))).end(OTHER)


def test_a_new_judgement_brings_no_process_back() -> None:
    offers = offered((ONE, judged("ab")), (OTHER, judged("a", "b")))
    offers.end(OTHER)
    offers.judge_again(OTHER, judged("a", "b"))
    assert names(offers) == ("ab", "")


def test_a_process_that_has_ended_is_judged_again_and_goes_with_the_next() -> None:
    offers = offered((ONE, judged("ab")))
    offers.end(ONE)
    offers.judge_again(ONE, judged("a", "b"))
    assert names(offers) == ("a", "b")
    offers.take(OTHER, judged("ab"))
    assert names(offers) == ("ab", "")
