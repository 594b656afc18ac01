"""From text to comparable words: for likening an intent to a catalog, in any script.

Text is NFKC-normalised and case-folded; `camelCase` and `snake_case` names fall into their
parts; accents of Latin letters go; scripts without spaces between words are cut into pairs of
letters. A URL counts as "url" (and its file kind), never as the words of its host: "github.com"
must not make every github tool look wanted. Stop words and the request words are English;
a text in another language simply has none of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

_STOP_WORDS: Final = frozenset(
    """a about also am an and are as at be been being but by can could did do does for from had
    has have he help her here him his how i if in into is it its ive just let may me might must my
    need no not of on or our please shall she should so some than that the their them then there
    these they this those to too us very want was we were what when where which who whom why will
    with would you your""".split()
)
_URL: Final = re.compile(
    r"https?://[^\s<>()\"']+"
    r"|\bwww\.[^\s<>()\"']+"
    # Bounded as host names are, since "a.a.a.a" without an end would take quadratic time.
    r"|\b[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.(?:com|org|net|io|dev|edu|gov)\b(?:/[^\s<>()\"']*)?",
    re.IGNORECASE,
)
# One of these is in everything that the pattern finds.
_URL_SIGNS: Final = ("://", "www.", *(".com .org .net .io .dev .edu .gov".split()))
_SPACES: Final = re.compile(r"[^\S\n]+")
_FILE_KIND: Final = re.compile(r"/[^/?#]*\.([A-Za-z0-9]{2,5})(?:[?#]|$)")
_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Thai, Lao, Burmese, Khmer, kana, Han, Hangul: no spaces between words, or suffixes galore.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?;\u3002\uff01\uff1f])\s*(?<=\s|[\u3002\uff01\uff1f])|\n+"
)
_CLAUSE_END: Final = re.compile(
    r"(?<=:)\s+|[\u2014\u3001\uff0c]|,\s*|\s+(?:and then|then|also|and|but|so that)\s+",
    re.IGNORECASE,
)
# A sentence that asks for something: it speaks of you and me, or opens with an order. In pasted
# text such sentences are rare, so the others count for less.
_REQUEST: Final = re.compile(
    r"\?|\b(?:i|me|my|mine|you|your|we|us|our|please|help|want|need)\b"
    r"|^\W*(?:(?:and|then|also|now|first|next|finally)\W+)*(?:add|analyz?se?|book|build|buy|calculate"
    r"|check|compare|convert|create|delete|describe|download|draft|edit|explain|extract|fact|fetch"
    r"|find|generate|get|give|list|look|make|open|plan|play|post|publish|read|remember|remove|render"
    r"|run|save|schedule|scrape|search|send|set|show|store|summari[sz]e|take|tell|translate|turn"
    r"|update|upload|write)\b",
    re.IGNORECASE,
)

# Bounds on what is read, so that a pasted file or blob costs no more time than its worth.
_LONGEST_TEXT: Final = 32_000  # of a longer one, both ends: the request stands before or after
_LONGEST_WORD: Final = 64  # longer ones are keys and blobs
_LONGEST_URL: Final = 400
_SHORT_TEXT: Final = 1_000

MOST_CLAUSES: Final = 40  # of an intent; a request rarely has ten, a pasted page hundreds

GRAM_LENGTH: Final = 4  # as good as 3 to 5 together, at a third of the cost (measured)


@dataclass(frozen=True, slots=True)
class Term:
    """A word as it is compared: its stems, and the letters it shares with its relatives."""

    stems: tuple[str, ...]
    grams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a text that asks for one thing, and whether its sentence is a request at all."""

    words: tuple[str, ...]
    is_request: bool


def words_of(text: str) -> list[str]:
    """The telling words of a text, in order: no stop words, no lone letters."""
    return list(chain.from_iterable(map(_telling_words, _tokens(text))))


def all_words(text: str) -> list[str]:
    """Every word of a text, in order; a camelCase name gives its parts and the whole."""
    return [word for token in _tokens(text) for word in _words(token)]


def _tokens(text: str) -> list[str]:
    if _may_hold_url(text):
        text = _URL.sub(_url_words, text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = _WORD.findall(text)
    # What is remembered of a token holds all of it; those of a short text are short.
    if len(text) > _SHORT_TEXT and max(map(len, found), default=0) > _LONGEST_WORD:
        return [token[:_LONGEST_WORD] for token in found]
    return found


def _may_hold_url(text: str) -> bool:
    """Tell most texts at a glance: the pattern takes longer than all else that is done to them."""
    if "." not in text and "/" not in text:
        return False
    small = text.lower()
    # Other scripts have letters that are an "i" to the pattern.
    return not text.isascii() or any(sign in small for sign in _URL_SIGNS)


def _words(token: str) -> Sequence[str]:
    token = token[:_LONGEST_WORD]
    return (token,) if token.isascii() and token.islower() else _parts(token)


@lru_cache(maxsize=50_000)
def _telling_words(token: str) -> tuple[str, ...]:
    """Pure; kept because the same tokens come again and again."""
    return tuple(word for word in _words(token) if word not in _STOP_WORDS and _tells(word))


def clauses_of(text: str) -> list[Clause]:
    """The clauses of a text that hold any telling word; of a very long text, of its ends."""
    found: list[Clause] = []
    for sentence in _SENTENCE_END.split(_SPACES.sub(" ", both_ends(text))):
        is_request = bool(_REQUEST.search(sentence))
        # What asks for nothing needs no fine ear.
        parts = _CLAUSE_END.split(sentence) if is_request else (sentence,)
        for part in parts:
            words = tuple(dict.fromkeys(words_of(part)))
            if words:
                found.append(Clause(words, is_request))
    return found


def at_most(limit: int, clauses: list[Clause]) -> list[Clause]:
    """The clauses, neighbours put together where there are more: bounds the time they take."""
    width = -(-len(clauses) // limit)
    if width <= 1:
        return clauses
    return [_joined(clauses[at : at + width]) for at in range(0, len(clauses), width)]


def _joined(clauses: Sequence[Clause]) -> Clause:
    words = tuple(dict.fromkeys(word for clause in clauses for word in clause.words))
    return Clause(words, any(clause.is_request for clause in clauses))


def both_ends(text: str) -> str:
    """The text, or its two ends where it is very long."""
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n{text[-half:]}"


def run_of(text: str) -> str:
    """All words in a row, to be searched for runs: " blog publish "."""
    return f" {' '.join(all_words(text))} "


@lru_cache(maxsize=50_000)
def term(word: str) -> Term:
    """Stems and letter groups of a word. Pure; kept because catalogs and intents share words."""
    if _UNSPACED.match(word):
        return Term((word,), ())
    return Term(_stems(word), tuple(dict.fromkeys(_grams(f"_{word}_"))))


def _grams(padded: str) -> Iterator[str]:
    for start in range(max(1, len(padded) - GRAM_LENGTH + 1)):
        yield padded[start : start + GRAM_LENGTH]


def _tells(word: str) -> bool:
    return len(word) > 1 or word.isdigit() or not word.isascii()


def _url_words(match: re.Match[str]) -> str:
    kind = _FILE_KIND.search(match.group()[:_LONGEST_URL])
    return f" url {kind.group(1)} " if kind else " url "


def _parts(token: str) -> list[str]:
    if token.isascii():
        if token.isupper() or token.isdigit():
            return [token.lower()]
        parts = _CAMEL.split(token)
        return [part.lower() for part in ((token, *parts) if len(parts) > 1 else parts)]
    return _foreign_parts(token.casefold())


def _foreign_parts(token: str) -> list[str]:
    found: list[str] = []
    start = 0
    for run in _UNSPACED.finditer(token):
        found.extend(_without_accents(token[start : run.start()]))
        letters = run.group()
        found.extend(letters[at : at + 2] for at in range(max(1, len(letters) - 1)))
        start = run.end()
    found.extend(_without_accents(token[start:]))
    return found


def _without_accents(token: str) -> list[str]:
    if not token:
        return []
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", token)
        if not unicodedata.combining(letter)
    )
    # Only where nothing but accents was lost: in other scripts the marks are letters.
    return [plain if plain.isascii() else token]


def _stems(word: str) -> tuple[str, ...]:
    """Two stems: without the plural, and without -ing and -ed as well.

    Either alone loses something (measured): the first keeps "rating" and "rate" apart, the
    second lets "booked" meet "book". The second is marked, so that the two never meet.
    """
    if len(word) < 4 or not word.isascii():
        return (word, f"~{word}")
    singular = _singular(word)
    root = singular
    for suffix in ("ing", "ed"):
        if root.endswith(suffix) and len(root) - len(suffix) >= 3:
            root = _undouble(root[: -len(suffix)])
            break
    if len(root) > 3:
        root = root[:-1] if root.endswith("e") else root
        root = root[:-1] + "i" if root.endswith("y") else root
    return (singular, f"~{root}")


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _undouble(root: str) -> str:
    if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
        return root[:-1]
    return root
