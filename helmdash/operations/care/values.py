"""What goes into the care of a conversation, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import HIDDEN, Doc, JsonName
from helmdash.queries.conversations.care import ActionText, StrengthText


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHistory:
    """The history that a gateway's client sends with the generation about to start.

    messages: how many, system turns included. What follows is asked only when the round is cleared,
    and costs a walk over the history. digest: gives a hash of exactly those. carried: indexes of
    the user messages that no reply has answered, as far as there is room for them. draft: tells,
    per heading of the re-entry package, what is about to be dropped. earlier: what of it tells of
    user messages that wait and are not carried.
    is_standstill: tells whether two rounds brought nothing new, by the number of messages that the
    first and the second of them began with, and the digest of the latter.
    """

    messages: int
    digest: Callable[[], str]
    carried: Callable[[], tuple[int, ...]] = tuple
    draft: Callable[[], Mapping[str, str]] = dict
    earlier: Callable[[], str] = str
    is_standstill: Callable[[int, int, str], bool] = lambda since, start, digest: True


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """How a gateway goes on in the open round.

    The first `messages` of the client's history (by `digest`) are replaced by `package`, but for
    those at the indexes `carried`; 0 messages: the round was not begun by a clear with a client, so
    that nothing is replaced. inserts: prompts recorded in this round, each with the number of the
    client's messages that it stands behind.
    """

    messages: int
    digest: str
    carried: tuple[int, ...]
    package: str
    inserts: tuple[tuple[int, str], ...]


# Of text whose own is not known: prose has more, code and Chinese about as many.
_BYTES_PER_TOKEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The sizes of the open round's newest call, where they can be trusted: tokens as reported, and
    the bytes that were sent for them."""

    model: str
    prompt_tokens: int
    sent_bytes: int

    def tokens_of(self, sent_bytes: int) -> int:
        """The tokens that a request of so many bytes has, by this call's bytes per token.

        A token has a byte at least. Where this call had more tokens, they were not of its text
        (images by their address, files, a prompt of the server's own), and they don't grow with it.
        """
        more = sent_bytes - self.sent_bytes
        if more > 0 and self.prompt_tokens > self.sent_bytes:
            return self.prompt_tokens + more // _BYTES_PER_TOKEN
        return self.prompt_tokens * sent_bytes // self.sent_bytes


# Whether a text of so many bytes still fits into the request, if the gateway goes on in this way.
Fits = Callable[[Restart | None, int, Newest], bool]
# The bytes of the generation about to start, if the gateway goes on in this way.
SentBytes = Callable[[Restart | None], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """What to do before the generation.

    text: what to tell the agent. persist: whether it belongs into the history. remaining: how many
    generations follow before the clear. carry: at a clear, the exact texts of the user that no
    reply has answered, in order. package: at a clear, the re-entry package of the new round.
    newest: the sizes of the call before, in the same round. is_braked: a clear is due, but care has
    stopped clearing. is_held: the round has a level, or texts that its later calls repeat, so that
    the next generation takes a step as well.
    """

    action: Annotated[
        ActionText,
        Doc(
            "none; guide: send `text` with this request only; record_prompt: send "
            "`text` as a user's message that stays; clear: begin anew with `package` and `carry`."
        ),
    ]
    strength: StrengthText | None
    text: str | None
    persist: Annotated[bool, Doc("Whether `text` belongs into the history.")]
    remaining: Annotated[int | None, Doc("Generations left until the clear.")]
    round_number: Annotated[int, JsonName("round")]
    generation: int
    carry: Annotated[
        tuple[str, ...], Doc("On clear: the user's texts to send again, as they came.")
    ] = ()
    package: Annotated[str | None, Doc("On clear: the re-entry package.")] = None
    is_repeat: Annotated[bool, HIDDEN] = False
    reason: Annotated[str, Doc("Why, in a sentence.")] = ""
    restart: Annotated[Restart | None, HIDDEN] = None
    newest: Annotated[Newest | None, HIDDEN] = None
    is_braked: Annotated[bool, HIDDEN] = False
    is_held: Annotated[bool, HIDDEN] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The new round, and what to begin it with.

    is_new False: the round that is open had no call yet, so nothing was cleared.
    """

    round_number: Annotated[int, JsonName("round")]
    package: Annotated[str, Doc("The re-entry package: send it first.")]
    carried: Annotated[
        tuple[str, ...], Doc("The user's texts that no reply has answered, as they came.")
    ]
    restart: Annotated[Restart | None, HIDDEN]
    is_new: Annotated[bool, HIDDEN]
