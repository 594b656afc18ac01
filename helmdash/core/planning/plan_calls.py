"""Calls: which entry a step of a plan calls, and with what, whatever the model wrote.

There is one way to call each thing, whatever spelling a model mixed. A pack is called by its name,
a pipeline by PIPELINE_RUN with its id and inputs; nothing calls the planner itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.catalog.catalog import CatalogEntry, EntryKind
from helmdash.core.planning.arguments import (
    Given,
    as_args,
    check,
    input_schema_of,
    joined,
    missing_members,
    same_form,
)
from helmdash.core.planning.plan_shapes import text_in, text_of
from helmdash.core.planning.plans import PIPELINE_RUN, UNKNOWN_TOOL, ArgFault, CheckArgs
from helmdash.core.planning.tool_names import ToolNames, is_meta, is_pipeline_run

# Gives the ids of the entries that are most like a text, nearest first.
Suggest = Callable[[str], tuple[str, ...]]

_ID_MEMBERS: Final = ("id", "pipeline_id", "pipeline")
_INPUT_MEMBERS: Final = ("inputs", "input", "args", "arguments", "parameters", "params")
# How models say that nothing serves; the first is how the prompt tells them to.
NONE_WORDS: Final = frozenset((UNKNOWN_TOOL, "none", "null", "nil", "n/a", "na", "no match", "-"))
# What people read at a glance.
MOST_SUGGESTIONS: Final = 5
# A reason is stored in a column of 200 characters, and read by people.
_LONGEST_QUOTE: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A call of an entry. `given`: a pack's arguments, or a pipeline's inputs; faults: theirs."""

    entry: CatalogEntry
    given: Mapping[str, object]
    faults: tuple[ArgFault, ...] = ()
    note: str = ""

    @property
    def is_pipeline(self) -> bool:
        return self.entry.kind is EntryKind.PIPELINE

    @property
    def tool(self) -> str:
        """The name in the step: a pack's own, or PIPELINE_RUN."""
        return PIPELINE_RUN if self.is_pipeline else self.entry.id

    @property
    def args(self) -> Mapping[str, object]:
        """A pack's arguments as given; for a pipeline its id, and the inputs as given."""
        return {"id": self.entry.id, "inputs": self.given} if self.is_pipeline else self.given

    @property
    def key(self) -> tuple[str, str]:
        """Equal for two calls that do the same."""
        return self.entry.id, same_form(self.given)

    def checked(self, check_args: CheckArgs, under: str | None = None) -> tuple[ArgFault, ...]:
        """What is wrong with the arguments, their form included.

        under: what stands before each field's name; None: as a step's arguments are nested.
        """
        under = self._under if under is None else under
        form = tuple(ArgFault(joined(under, each.field), each.message) for each in self.faults)
        return form + check(self.entry, self.given, check_args, under)

    def missing(self, under: str | None = None) -> tuple[str, ...]:
        """Dotted paths of the required arguments that were not given; `under` as in `checked`."""
        under = self._under if under is None else under
        found = missing_members(input_schema_of(self.entry), self.given)
        return tuple(joined(under, path) for path in found)

    @property
    def _under(self) -> str:
        return "inputs" if self.is_pipeline else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A call of nothing: why, as a clause of a sentence; what was asked for; the likely ids.

    tells_wish: whether the words that were asked for say what is wanted. is_none: the model itself
    says that there is no entry. missing: arguments whose lack makes it a miss.
    """

    reason: str
    asked: str
    tells_wish: bool = True
    rivals: tuple[str, ...] = ()
    is_none: bool = False
    missing: tuple[str, ...] = ()


def resolve(asked: str, given: Given, names: ToolNames) -> PlannedCall | Miss:
    """Find what a tool's name and its arguments call. Never raises."""
    if not asked.strip():
        return Miss(reason="the step names no tool", asked="")
    args = given.args or {}
    if asked != PIPELINE_RUN and (found := names.find_exact(asked)):
        return _named(asked, found, given)
    if is_meta(asked) and names.find(asked) is None:
        return _self_call(asked)
    if is_pipeline_run(asked):
        return _pipeline_run(args, given.faults, names)
    named = names.find(asked)
    if named is None and is_none_word(asked):
        return _none()
    if named is None:
        return _unknown(asked, f"tool {quote(asked)} is not in the catalog", names)
    return PlannedCall(
        entry=named.entry, given=args, faults=given.faults, note=_note(asked, named.entry)
    )


def with_run_id(asked: str, step: Mapping[str, object], given: Given) -> Given:
    """Put the id of a pipeline run where it belongs when it stands beside the arguments."""
    args = given.args or {}
    if not is_pipeline_run(asked) or text_in(args, _ID_MEMBERS):
        return given
    id = text_in(step, ("pipeline_id", "pipeline", "id"))
    if not id:
        return given
    inputs = args if "inputs" in args else {"inputs": args}
    return Given({"id": id, **inputs}, given.faults)


def nearest(
    asked: str, text: str, *, names: ToolNames, suggest: Suggest, first: Sequence[str] = ()
) -> tuple[str, ...]:
    """The ids that may have been meant: `first`, then by spelling, then by what `text` says."""
    found = [*first, *names.near(asked), *suggest(text)]
    return tuple(dict.fromkeys(id for id in found if id in names))[:MOST_SUGGESTIONS]


def is_none_word(asked: str) -> bool:
    """Whether a name is a model's word for "there is no entry", rather than a name.

    >>> is_none_word("<Unknown>")
    True
    """
    return asked.strip(" \t\r\n\"'`<>()").lower() in NONE_WORDS


def quote(text: str) -> str:
    """A text as a sentence quotes it: on one line, and not for pages.

    >>> quote("web.\\nsearch")
    '"web. search"'
    """
    line = " ".join(text[: _LONGEST_QUOTE * 4].replace("\0", "\ufffd").split())
    return f'"{line[:_LONGEST_QUOTE]}{"…" if len(line) > _LONGEST_QUOTE else ""}"'


def _named(asked: str, entry: CatalogEntry, given: Given) -> PlannedCall:
    """The call of an entry by its name; a pipeline's inputs may be wrapped as for a run."""
    args, faults = given.args or {}, given.faults
    if entry.kind is EntryKind.PIPELINE and _is_wrapped(entry, args):
        inner = as_args(args["inputs"])
        args, faults = inner.args or {}, faults + inner.faults
    return PlannedCall(entry=entry, given=args, faults=faults, note=_note(asked, entry))


def _pipeline_run(
    args: Mapping[str, object], faults: tuple[ArgFault, ...], names: ToolNames
) -> PlannedCall | Miss:
    member = next((member for member in _ID_MEMBERS if text_of(args.get(member))), None)
    if member is None:
        return Miss(
            reason="the pipeline run names no pipeline: args.id is missing",
            asked=PIPELINE_RUN,
            tells_wish=False,
            missing=("id",),
        )
    id = str(args[member])
    if is_meta(id) and names.find(id) is None:
        return _self_call(id)
    named = names.find(id)
    if named is None and is_none_word(id):
        return _none()
    if named is None:
        return _unknown(id, f"pipeline {quote(id)} (args.id) is not in the catalog", names)
    inputs, note = _inputs(args, member)
    if named.entry.kind is EntryKind.PACK:
        note = f"{named.entry.id} is a pack: it is called by its name, not run as a pipeline."
    return PlannedCall(
        entry=named.entry,
        given=inputs.args or {},
        faults=faults + inputs.faults,
        note=note or _note(id, named.entry),
    )


def _inputs(args: Mapping[str, object], id_member: str) -> tuple[Given, str]:
    """The inputs of a pipeline run; loose beside the id, where models forget the member."""
    for member in _INPUT_MEMBERS:
        if args.get(member) is not None:
            return as_args(args[member]), ""
    loose = {
        name: value
        for name, value in args.items()
        if name not in _INPUT_MEMBERS and name != id_member
    }
    note = f"The inputs of {quote(str(args[id_member]))} stood beside its id." if loose else ""
    return Given(loose), note


def _is_wrapped(entry: CatalogEntry, args: Mapping[str, object]) -> bool:
    if "inputs" not in args or not {"inputs", *_ID_MEMBERS}.issuperset(args):
        return False
    properties = (input_schema_of(entry) or {}).get("properties")
    return not (isinstance(properties, Mapping) and "inputs" in properties)


def _note(asked: str, entry: CatalogEntry) -> str:
    return "" if asked.strip() == entry.id else f"{quote(asked)} was read as {entry.id}."


def _none() -> Miss:
    return Miss(
        reason="the model found no entry for this part", asked="", tells_wish=False, is_none=True
    )


def _self_call(asked: str) -> Miss:
    return Miss(
        reason=f"{quote(asked)} is the planner's own tool; a plan cannot call itself",
        asked=asked,
        tells_wish=False,
    )


def _unknown(asked: str, reason: str, names: ToolNames) -> Miss:
    rivals = names.rivals(asked)
    if rivals:
        several = " or ".join(rivals[:3])
        return Miss(reason=f"{quote(asked)} could be {several}"[:200], asked=asked, rivals=rivals)
    return Miss(reason=reason, asked=asked)
