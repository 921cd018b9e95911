"""Which credentials an operation is called with, and what is said about those that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.gateway import Gateway, Login, ManagedIdentity, Secret
from portbook.apis.openapi.security_schemes_and_credentials import (
    ChosenCredentials,
    CredentialChooser,
    Requirement,
    SecurityScheme,
    described,
    require_known_schemes,
)
from portbook.apis.table_reader import Table
from portbook.tools.http_operation import CredentialUse

KEY = CredentialUse("key", "header", "X-Key")
QUERY = CredentialUse("query", "query", "api_key")
BASIC = CredentialUse("basic", "header", "Authorization", "basic")
BEARER = CredentialUse("bearer", "header", "Authorization", "bearer")
SCHEMES = {
    "key": SecurityScheme("key", "apiKey in the header X-Key", KEY),
    "query": SecurityScheme("query", "apiKey in the query api_key", QUERY),
    "basic": SecurityScheme("basic", "http basic", BASIC),
    "bearer": SecurityScheme("bearer", "http bearer", BEARER),
    "sid": SecurityScheme("sid", "apiKey in the cookie sid", CredentialUse("sid", "cookie", "sid")),
    "tls": SecurityScheme("tls", "mutualTLS", None),
    "host": SecurityScheme("host", "apiKey in the header Host", CredentialUse("host", "header", "Host")),
}
SECRET = Secret(env="NAME")
LACKING = "what the requirement says"


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def gateway(*schemes: str, **others: Any) -> Gateway:
    return Gateway(
        "x", "https://a.example", logins=tuple((name, Login(SECRET)) for name in schemes), **others
    )


@pytest.mark.parametrize(
    ("given", "requirement", "chosen"),
    [
        ((), (), ChosenCredentials()),
        (("key",), (), ChosenCredentials()),
        (("key",), (("key",),), ChosenCredentials((KEY,))),
        (("key", "query"), (("query",), ("key",)), ChosenCredentials((QUERY,))),
        (("key",), (("query",), ("key",)), ChosenCredentials((KEY,))),
        (("key", "query"), (("key", "query"),), ChosenCredentials((KEY, QUERY))),
        (("key",), (("key", "query"),), ChosenCredentials((KEY,), LACKING)),
        (("key",), (("key", "query"), ("bearer",)), ChosenCredentials((KEY,), LACKING)),
        ((), (("key",), ()), ChosenCredentials()),
        (("key",), ((), ("key",)), ChosenCredentials((KEY,))),
        ((), (("key",),), ChosenCredentials(lacks=LACKING)),
        (("tls",), (("tls",),), ChosenCredentials(lacks=LACKING)),
        (("ghost",), (("ghost",),), ChosenCredentials(lacks=LACKING)),
    ],
    ids=str,
)
def test_the_first_alternative_with_credentials_is_chosen(
    given: tuple[str, ...], requirement: Requirement, chosen: ChosenCredentials
) -> None:
    found = CredentialChooser(gateway(*given), SCHEMES).choose(requirement)
    assert found == ChosenCredentials(chosen.uses, chosen.lacks and described(requirement, SCHEMES))


@pytest.mark.parametrize(
    ("settings", "requirement", "is_complete"),
    [
        ({"bearer": SECRET}, (("bearer",),), True),
        ({"managed_identity": ManagedIdentity("api://x")}, (("bearer",),), True),
        ({"bearer": SECRET}, (("basic",),), False),
        ({"headers": (("authorization", SECRET),)}, (("basic",),), True),
        ({"headers": (("x-key", SECRET),)}, (("key",),), True),
        ({"subscription_key": SECRET, "subscription_key_header": "x-KEY"}, (("key",),), True),
        ({"subscription_key": SECRET}, (("key",),), False),
        ({"headers": (("api_key", SECRET),)}, (("query",),), False),
    ],
    ids=str,
)
def test_a_credential_of_all_requests_counts_for_its_scheme(
    settings: Any, requirement: Requirement, is_complete: bool
) -> None:
    chosen = CredentialChooser(gateway(**settings), SCHEMES).choose(requirement)
    assert chosen.uses == ()
    assert (not chosen.lacks) is is_complete


def doubts(requirements: list[Requirement], *given: str) -> list[str]:
    chooser = CredentialChooser(gateway(*given), SCHEMES)
    for requirement in requirements:
        chooser.choose(requirement)
    return list(chooser.doubts(Table({}, ("http", "x"), complain), len(requirements)))


def test_what_is_missing_is_counted_and_named_with_what_to_add() -> None:
    key, query = doubts([(("key",),), (("key",),), (("query",), ("basic",)), ()])
    assert key == (
        "http.x.credentials has nothing for key (apiKey in the header X-Key), which 2 of 4 operations "
        'require; they are called without it until you add key = { env = "VARIABLE" }'
    )
    assert query == (
        "http.x.credentials has nothing for query (apiKey in the query api_key) or basic (http basic), which "
        '1 of 4 operations require; they are called without it until you add query = { env = "VARIABLE" }'
    )
    [basic] = doubts([(("key", "basic"),)], "key")
    assert basic.endswith('add basic = { username = "…", password = { env = "VARIABLE" } }')
    [tls] = doubts([(("tls",),)])
    assert tls.endswith("add what it needs to headers")


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert doubts([(("key",),), (("bearer",), ())], "key") == []


def test_warnings_about_credentials_are_few() -> None:
    assert len(doubts([((f"scheme{number}",),) for number in range(50)])) == 5


@pytest.mark.parametrize(
    ("name", "login", "others", "sentence"),
    [
        ("kei", Login(SECRET), {}, "is not a security scheme of the document; did you mean key?"),
        ("zzz", Login(SECRET), {}, "is not a security scheme of the document; it has basic, bearer, host"),
        ("tls", Login(SECRET), {}, "is for mutualTLS, which is not supported"),
        ("host", Login(SECRET), {}, "is for apiKey in the header Host, which is not supported"),
        ("key", Login(SECRET, "ada"), {}, "which has no username"),
        ("basic", Login(SECRET), {"bearer": SECRET}, "sets the header Authorization, and so does a setting"),
        ("key", Login(SECRET), {"headers": (("x-key", "a"),)}, "sets the header X-Key, and so does"),
        ("sid", Login(SECRET), {"headers": (("cookie", "a=b"),)}, "sets the header Cookie, and so does"),
    ],
    ids=str,
)
def test_a_credential_that_fits_no_scheme_is_refused(
    name: str, login: Login, others: Any, sentence: str
) -> None:
    made = Gateway("x", "https://a.example", logins=((name, login),), **others)
    with pytest.raises(Complaint) as caught:
        require_known_schemes(Table({}, ("http", "x", "credentials"), complain), made, [SCHEMES])
    assert str(caught.value).startswith(f"http.x.credentials.{name} ")
    assert sentence in str(caught.value)


def test_a_credential_may_be_for_a_scheme_of_any_document() -> None:
    table = Table({}, ("http", "x", "credentials"), complain)
    require_known_schemes(
        table, gateway("key", "query"), [{"key": SCHEMES["key"]}, {"query": SCHEMES["query"]}]
    )
