"""Which conversation goes on, as far as this process has seen it."""

from __future__ import annotations

from helmdash.core.conversations.fingerprints import ChainLinks, ChatTurn, links_of
from helmdash.gateway.remediation.known_names import KnownNames

WHO = (1, "agent")
ASK, REPLY, MORE = (
    ChatTurn(role="user", text="Read the files and tell me what they say, one after the other."),
    ChatTurn(role="assistant", text='call read {"file":1}'),
    ChatTurn(role="tool", text="result one"),
)


def links(*turns: ChatTurn, reply: ChatTurn | None = None, is_retry: bool = False) -> ChainLinks:
    return links_of(turns, reply=reply, is_retry=is_retry)


def test_a_request_with_the_newest_calls_reply_goes_on() -> None:
    names = KnownNames()
    names.note(WHO, links(ASK, reply=REPLY), "a")

    assert names.find(WHO, links(ASK, REPLY, MORE)) == "a"
    assert names.find((2, "agent"), links(ASK, REPLY, MORE)) is None
    assert names.find((1, "other"), links(ASK, REPLY, MORE)) is None
    # The same question, another reply, or tried again: the database tells.
    assert names.find(WHO, links(ASK)) is None
    assert names.find(WHO, links(ASK, ChatTurn(role="assistant", text="No."), MORE)) is None
    assert names.find(WHO, links(ASK, REPLY, MORE, is_retry=True)) is None


def test_only_the_newest_call_is_gone_on_with() -> None:
    names = KnownNames()
    names.note(WHO, links(ASK, reply=REPLY), "a")
    names.note(WHO, links(ASK, REPLY, MORE, reply=REPLY), "a")

    assert names.find(WHO, links(ASK, REPLY, MORE)) is None
    assert names.find(WHO, links(ASK, REPLY, MORE, REPLY, MORE)) == "a"


def test_two_that_went_the_same_way_are_told_apart_elsewhere() -> None:
    names = KnownNames()
    for name in ("a", "b"):
        names.note(WHO, links(ASK, reply=REPLY), name)

    assert names.find(WHO, links(ASK, REPLY, MORE)) is None


def test_it_stays_small() -> None:
    names = KnownNames(most=2)
    for number in range(5):
        said = ChatTurn(role="assistant", text=f"reply {number}")
        names.note(WHO, links(ASK, reply=said), f"talk-{number}")

    found = [
        names.find(WHO, links(ASK, ChatTurn(role="assistant", text=f"reply {number}"), MORE))
        for number in range(5)
    ]
    assert found == [None, None, None, "talk-3", "talk-4"]
