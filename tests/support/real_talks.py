"""Conversations put together from the sizes of real messages, cut as servers cut, with the truth.

The second corpus of core.truncation.detector. cut_talks draws bytes and tokens from distributions;
here every message is one that a public tokenizer has counted (tests/core/message_sizes.json), so
scatter, drift and kinds of text are those of real prompts: code, logs, diffs, JSON, prose, nine
languages.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from helmdash.core.truncation.sizes import Sizes
from tests.support.cut_talks import Talk, Turn

_TABLE = Path(__file__).parents[1] / "core" / "message_sizes.json"
# What agents and people send: kinds of text with their weights.
_PROFILES = {
    "coding": {"code": 5, "diff": 2, "logs": 1, "paths": 1, "prose": 2, "json": 1},
    "web": {"code": 3, "web": 3, "prose": 1, "json": 2},
    "operating": {"logs": 4, "prose": 2, "json": 2, "paths": 1},
    "english": {"prose": 1},
    "chinese": {"chinese": 6, "prose": 1},
    "japanese": {"japanese": 1},
    "russian": {"russian": 6, "code": 1},
    "german": {"german": 1},
    "hindi": {"hindi": 4, "prose": 1},
    "arabic": {"arabic": 1},
    "data": {"json": 4, "numbers": 2, "prose": 1},
    "mixed": {"prose": 3, "code": 2, "chinese": 1, "logs": 1, "base64": 1, "web": 1},
}
_POWERS = (2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
_WINDOWS = (*_POWERS, 10_000, 12_288, 32_000, 40_960, 200_000)
# Tokens that a server adds to a whole prompt, and bytes of the JSON around the messages.
_TEMPLATE_TOKENS, _ENVELOPE_BYTES = 3, 60


class Message(NamedTuple):
    """One message, its role and template included."""

    bytes: int
    tokens: int


Prompt = Sequence[Message]
Cut = Callable[["Maker", Prompt, int], int]


@cache
def tokenizers() -> dict[str, dict[str, list[list[int]]]]:
    """By name: kind of text -> [bytes, tokens] of messages."""
    table = json.loads(_TABLE.read_text(encoding="ascii"))
    found: dict[str, dict[str, list[list[int]]]] = table["tokenizers"]
    return found


def real_talks(tokenizer: str, seed: int, count: int) -> Iterator[Talk]:
    """Half cut, half whole, over six models, each with a kind of text it mostly gets."""
    maker = Maker(tokenizer, seed)
    names = list(_CUTS)
    for number in range(count):
        maker.turn_to_model()
        if number % 2 == 0:
            yield from maker.whole()
        elif number // 2 % (len(names) + 1) == len(names):
            yield from maker.single_prompts()
        else:
            yield maker.cut(names[number // 2 % (len(names) + 1)])


def tokens_of(prompt: Prompt) -> int:
    """What a server counts of a whole prompt."""
    return sum(message.tokens for message in prompt) + _TEMPLATE_TOKENS


def sizes_of(prompt: Prompt, tokens: int | None = None) -> Sizes:
    """What is told of a call; `tokens` is what was reported, by default all of them."""
    return Sizes(
        bytes=sum(message.bytes for message in prompt) + _ENVELOPE_BYTES,
        tokens=tokens_of(prompt) if tokens is None else tokens,
        messages=len(prompt),
    )


class Maker:
    """Makes conversations of one tokenizer from one seed."""

    def __init__(self, tokenizer: str, seed: int) -> None:
        self.chance = random.Random(f"{tokenizer} {seed}")
        self._kinds = tokenizers()[tokenizer]
        profiles = list(_PROFILES)
        self._usual = {f"model-{n}": self.chance.choice(profiles) for n in range(6)}
        self._model, self._profile = "", ""
        self._role_bytes, self._role_tokens = 30, 4

    def turn_to_model(self) -> None:
        """Choose the next conversation's model, text and template."""
        chance = self.chance
        self._model = chance.choice(list(self._usual))
        is_usual = chance.random() < 0.5
        self._profile = self._usual[self._model] if is_usual else chance.choice(list(_PROFILES))
        self._role_bytes = chance.choice((28, 32, 40))
        self._role_tokens = chance.choice((3, 4, 5, 7))

    def cut(self, scenario: str) -> Talk:
        """A conversation that outgrows a window at some call, or had outgrown it at its first."""
        chance = self.chance
        prompts = self._prompts(chance.randint(10, 60))
        totals = [tokens_of(prompt) for prompt in prompts]
        at = 0 if chance.random() < 0.25 else chance.randrange(1, max(len(totals) * 2 // 3, 2))
        share = chance.uniform(0.4, 0.98) if at == 0 else chance.uniform(0.85, 1)
        window = self._window(scenario, totals[at] * share)
        talk = Talk(scenario=scenario, model=self._model_of(f"{scenario}-{window}"))
        talk.turns += [self._turn(_CUTS[scenario], prompt, window) for prompt in prompts]
        return talk

    def single_prompts(self) -> Iterator[Talk]:
        """Documents and a question, each call a conversation of its own, up to six windows long."""
        chance = self.chance
        how = chance.choice(list(_CUTS.values()))
        window = chance.choice(_POWERS[:5])
        model = self._model_of(f"single-{window}")
        for _ in range(chance.randint(3, 12)):
            prompt = [self._beginning(1)]
            wanted = window * chance.uniform(0.3, 6)
            while tokens_of(prompt) < wanted:
                prompt.append(self._message())
            turn = self._turn(how, prompt, window)
            yield Talk(scenario="single", model=model, turns=[turn])

    def whole(self) -> Iterator[Talk]:
        """What may look like a cut and is none."""
        scenario, make = self.chance.choice(list(_WHOLE.items()))
        talk = Talk(scenario=scenario, model=self._model)
        talk.turns += make(self, self._prompts(self.chance.randint(10, 60)))
        yield talk

    def _turn(self, how: Cut, prompt: Prompt, window: int) -> Turn:
        is_cut = tokens_of(prompt) > window
        return Turn(sizes_of(prompt, how(self, prompt, window) if is_cut else None), is_cut)

    def _model_of(self, own: str) -> str:
        """Half of them on a model that others use uncut."""
        return self._model if self.chance.random() < 0.5 else f"{self._model}-{own}"

    def _window(self, scenario: str, wanted: float) -> int:
        if scenario == "hosted":
            return max(int(wanted), 1_500)
        return min(_WINDOWS, key=lambda window: abs(window - wanted))

    def _prompts(self, calls: int) -> list[Prompt]:
        """A conversation's prompts, each the one before with a reply and what came next."""
        chance = self.chance
        messages = [self._beginning(chance.choice((1, 1, 2, 4, 8, 20)))]
        pace = chance.choice((1, 1, 2, 2, 3, 5))
        prompts: list[Prompt] = []
        for _ in range(calls):
            messages += [self._message() for _ in range(pace)]
            prompts.append(tuple(messages))
            messages.append(self._message(of=4))
            if chance.random() < 0.02:
                self._profile = chance.choice(list(_PROFILES))
        return prompts

    def _beginning(self, parts: int) -> Message:
        """A system prompt, and in a third of cases tools, which a template writes its own way."""
        chance = self.chance
        found = [self._message() for _ in range(parts)]
        if chance.random() < 0.3:
            size = chance.randint(1_000, 12_000)
            found.append(Message(size, int(size / chance.uniform(3.5, 5.5))))
        return Message(sum(each.bytes for each in found), sum(each.tokens for each in found))

    def _message(self, *, of: int = 1) -> Message:
        """A message of the profile; the shortest `of` so many."""
        kinds = _PROFILES[self._profile]
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        size, tokens = min(self.chance.choice(self._kinds[kind]) for _ in range(of))
        return Message(size + self._role_bytes, tokens + self._role_tokens)


def _to_half(maker: Maker, prompt: Prompt, window: int) -> int:
    return window // 2 + maker.chance.choice((2, 2, 2, 3, 4))


def _to_the_window(maker: Maker, prompt: Prompt, window: int) -> int:
    return window


def _by_blocks(maker: Maker, prompt: Prompt, window: int) -> int:
    """Halves of the window go until the rest fits: it fills again, and is cut again."""
    kept, total = 4, tokens_of(prompt)
    block = (window - kept) // 2
    return total - (total - kept - block) // block * block


def _oldest_first(maker: Maker, prompt: Prompt, window: int) -> int:
    """Whole messages go, but for the beginning and the newest."""
    rest = [message.tokens for message in prompt[1:]]
    room = window - prompt[0].tokens - _TEMPLATE_TOKENS
    while len(rest) > 1 and sum(rest) > room:
        rest.pop(0)
    return min(window - room + sum(rest), window)


def _middle_out(maker: Maker, prompt: Prompt, window: int) -> int:
    """Whole messages of the middle go, or so much of their text that a little room is left."""
    if maker.chance.random() < 0.5:
        return int(window * maker.chance.uniform(0.96, 1))
    rest = [message.tokens for message in prompt]
    while len(rest) > 3 and sum(rest) + _TEMPLATE_TOKENS > window:
        rest.pop(len(rest) // 2)
    return min(sum(rest) + _TEMPLATE_TOKENS, int(window * maker.chance.uniform(0.97, 1)))


_CUTS: dict[str, Cut] = {
    "half": _to_half,
    "fills again": _by_blocks,
    "window": _to_the_window,
    "hosted": _to_the_window,
    "oldest first": _oldest_first,
    "middle-out": _middle_out,
}


def _plain(maker: Maker, prompts: list[Prompt]) -> list[Turn]:
    return [Turn(sizes_of(prompt), False) for prompt in prompts]


def _retried(maker: Maker, prompts: list[Prompt]) -> list[Turn]:
    return [turn for turn in _plain(maker, prompts) for _ in range(maker.chance.choice((1, 1, 2)))]


def _newest_only(maker: Maker, prompts: list[Prompt]) -> list[Turn]:
    """The client sends its beginning and its four newest messages."""
    return [Turn(sizes_of((prompt[0], *prompt[-4:])), False) for prompt in prompts]


def _edited(maker: Maker, prompts: list[Prompt]) -> list[Turn]:
    """Now and then the client empties most of the old messages for one call."""
    turns: list[Turn] = []
    for prompt in prompts:
        sent: Prompt = prompt
        if maker.chance.random() < 0.2 and len(prompt) > 3:
            old = [
                Message(60 + each.bytes // 50, 15 + each.tokens // 50) if number % 3 else each
                for number, each in enumerate(prompt[1:-2])
            ]
            sent = (prompt[0], *old, *prompt[-2:])
        turns.append(Turn(sizes_of(sent), False))
    return turns


def _compacted(maker: Maker, prompts: list[Prompt]) -> list[Turn]:
    """A summary takes the place of the old messages; half of the clients say so."""
    turns: list[Turn] = []
    start, dropped, opened = 0, 1, 1
    summary: Prompt = ()
    while start < len(prompts):
        end = start + maker.chance.randint(4, 12)
        for prompt in prompts[start:end]:
            sent = (prompt[0], *summary, *prompt[dropped:])
            turns.append(Turn(sizes_of(sent), False, round_number=opened))
        dropped = max(len(prompts[min(end, len(prompts)) - 1]) - 3, 1)
        summary = prompts[0][-1:]
        opened += maker.chance.choice((0, 1))
        start = end
    return turns


def _only_new(maker: Maker, prompts: list[Prompt]) -> list[Turn]:
    """The server reuses its state and counts what it evaluated anew; the reply is mostly there
    already, and now and then the state is lost."""
    turns = [Turn(sizes_of(prompts[0]), False)]
    for number, prompt in enumerate(prompts[1:], 1):
        seen = len(prompts[number - 1]) + (number % 5 > 0)
        is_lost = maker.chance.random() < 0.05
        turns.append(Turn(sizes_of(prompt, tokens_of(prompt if is_lost else prompt[seen:])), False))
    return turns


_WHOLE: dict[str, Callable[[Maker, list[Prompt]], list[Turn]]] = {
    "plain": _plain,
    "retried": _retried,
    "newest only": _newest_only,
    "edited": _edited,
    "compacted": _compacted,
    "only new": _only_new,
}
