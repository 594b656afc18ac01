"""Reading a route: from any JSON value a model answered to a checked recommendation.

An invented id is demoted to "none" and never replaced by an alternative in silence; an honest
"none" stays what it is. Either way the gap is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from helmdash.core.calls.finish import FinishReason
from helmdash.core.catalog.catalog import Catalog, EntryKind
from helmdash.core.decoding.answer_search import decode_best
from helmdash.core.decoding.decoding import Decoded
from helmdash.core.planning.arguments import read_args
from helmdash.core.planning.plan_calls import (
    NONE_WORDS,
    Miss,
    PlannedCall,
    Suggest,
    is_none_word,
    nearest,
    quote,
    resolve,
)
from helmdash.core.planning.plan_shapes import clip, text_in, text_of
from helmdash.core.planning.plans import (
    MOST_ALTERNATIVES,
    Alternative,
    CheckArgs,
    Destination,
    GapWarning,
    PlannedRoute,
    ProposedPack,
    RouteKind,
    UnusablePlan,
)
from helmdash.core.planning.tool_names import ToolNames

__all__ = ["decode_route", "is_destination_shaped", "is_route_shaped", "read_route"]

_WRAPPERS: Final = ("route", "routing", "answer", "result", "response", "output", "data")
_MOST_WRAPPERS: Final = 3
_ID_MEMBERS: Final = ("id", "name", "tool", "pack", "pipeline")
_KIND_MEMBERS: Final = ("kind", "type")
_INPUT_MEMBERS: Final = ("suggested_inputs", "inputs", "args", "arguments", "parameters")
_WHY_MEMBERS: Final = ("why", "reason", "rationale")
_KIND_OF: Final[Mapping[EntryKind, RouteKind]] = {
    EntryKind.PACK: RouteKind.PACK,
    EntryKind.PIPELINE: RouteKind.PIPELINE,
}
_NONE_WORDS: Final = NONE_WORDS | {""}
_LONGEST_TEXT: Final = 4_000
_LONGEST_WHY: Final = 1_000
# Of a pasted text as a missing capability, what a person reads.
_LONGEST_CAPABILITY: Final = 400
# Alternatives beyond this are not even looked at: a model that lists so many lists everything.
_MOST_READ: Final = 50
_PLACEHOLDER: Final = "TBD"
_ASK: Final = "Ask the user what the missing step should do, then route again."
_WHY_NONE: Final = "Nothing in the catalog does this."
_WHY_DEMOTED: Final = "The model recommended something that cannot be called."


def is_route_shaped(value: object) -> bool:
    """Whether a value is a route: an object with a recommendation, wrapped or not.

    One that only tells a gap recommends nothing, and says so.
    """
    return _find_route(value) is not None


def is_full_route(value: object) -> bool:
    """Whether a value is a route that says something: it names an entry, or says why none serves.

    A none beside which nothing is told may be a slip, or the form that the model began with.
    """
    members = _find_route(value)
    if members is None or "recommendation" not in members:
        return False
    wanted = members["recommendation"]
    if isinstance(wanted, list):
        wanted = wanted[0] if wanted else None
    id = wanted if isinstance(wanted, str) else ""
    if isinstance(wanted, Mapping):
        id = text_in(wanted, _ID_MEMBERS)
        if text_in(wanted, _KIND_MEMBERS).lower() == RouteKind.NONE:
            return _tells_gap(members) or bool(text_in(wanted, _WHY_MEMBERS))
    return bool(id.strip()) and not is_none_word(id)


def is_destination_shaped(value: object) -> bool:
    """Whether a value is a lone recommendation: an object with a kind and an id.

    An alternative looks the same, so this is for replies without a route.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        return False
    return text_in(value, _KIND_MEMBERS).lower() in set(RouteKind)


def decode_route(raw: str, *, finish_reason: FinishReason | None = None) -> Decoded:
    """Find the route in a model's reply; an empty one only where there is none that says something,
    a lone recommendation only where there is no route.

    finish_reason None: the provider gave none. Raises Undecodable where no JSON of the reply is a
    route or a recommendation.
    """
    shapes = (is_full_route, is_route_shaped, is_destination_shaped)
    return decode_best(raw, shapes, finish_reason=finish_reason, label="route")


def read_route(
    value: object,
    *,
    catalog: Catalog,
    intent: str,
    check_args: CheckArgs,
    suggest: Suggest,
    partial: bool = False,
) -> PlannedRoute:
    """Turn a decoded answer into a route against the catalog that stands behind it.

    The arguments are those of `read_plan`. Raises UnusablePlan for an answer that recommends
    nothing and does not say so either; nothing else, whatever the value.
    """
    members = _find_route(value)
    if members is None and is_destination_shaped(value) and isinstance(value, Mapping):
        members = {"recommendation": value}
    if members is None:
        raise UnusablePlan("route.no_recommendation", "The answer is no route: no recommendation.")
    reading = _Reading(ToolNames(catalog), intent, check_args, suggest)
    if partial:
        reading.note("The reply was cut off; what was written to its end is kept.")
    wanted, others = _recommended(members, reading)
    kind = text_in(wanted, _KIND_MEMBERS).lower()
    if partial and not text_in(wanted, _ID_MEMBERS) and kind != RouteKind.NONE:
        raise UnusablePlan("route.cut_off", "The reply ended before its recommendation.")
    return reading.route(wanted, others, members, partial=partial)


@dataclass(slots=True)
class _Reading:
    """One answer being read: what is looked up, and what has to be told."""

    names: ToolNames
    intent: str
    check_args: CheckArgs
    suggest: Suggest
    notes: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        if sentence and sentence not in self.notes:
            self.notes.append(sentence)

    def route(
        self,
        wanted: Mapping[str, object],
        others: Sequence[object],
        members: Mapping[str, object],
        *,
        partial: bool,
    ) -> PlannedRoute:
        reasoning = clip(text_of(members.get("reasoning")), _LONGEST_TEXT)
        asked = ""
        found = self._resolve(wanted)
        if isinstance(found, Miss):
            told = f"{found.reason[:1].upper()}{found.reason[1:]}, so nothing is recommended."
            reasoning = f"{told} {reasoning}".strip()
            self.note(told)
            asked, chosen = found.asked, _none(_WHY_DEMOTED)
        elif found is None:
            if (named := self._named_beside_none(wanted)) is not None:
                others = [named, *others]
            chosen = _none(clip(text_in(wanted, _WHY_MEMBERS), _LONGEST_WHY) or _WHY_NONE)
        else:
            chosen = self._chosen(found, wanted)
        rivals = found.rivals if isinstance(found, Miss) else ()
        return PlannedRoute(
            recommendation=chosen,
            alternatives=tuple(self._alternatives(others, chosen.id)),
            gap_warning=self._gap_warning(members.get("gap_warning"), chosen, asked, rivals),
            reasoning=reasoning,
            partial=partial,
            notes=tuple(self.notes),
        )

    def _resolve(self, wanted: Mapping[str, object]) -> PlannedCall | Miss | None:
        """What a recommendation calls; None where it says that nothing serves."""
        id = text_in(wanted, _ID_MEMBERS)
        if text_in(wanted, _KIND_MEMBERS).lower() == RouteKind.NONE:
            return None
        if (not id or is_none_word(id)) and id not in self.names:
            return None
        return resolve(id, read_args(wanted, _INPUT_MEMBERS), self.names)

    def _named_beside_none(self, wanted: Mapping[str, object]) -> Mapping[str, object] | None:
        """The entry that is named although nothing is said to serve: an alternative at most."""
        id = text_in(wanted, _ID_MEMBERS)
        if not id or self.names.find(id) is None:
            return None
        self.note(f"The model named {quote(id)} and said that nothing serves; see alternatives.")
        return {"id": id}

    def _chosen(self, call: PlannedCall, wanted: Mapping[str, object]) -> Destination:
        self.note(call.note)
        kind = _KIND_OF[call.entry.kind]
        said = text_in(wanted, _KIND_MEMBERS).lower()
        if said and said != kind:
            self.note(f"{call.entry.id} is a {kind}, not a {clip(said, 40)}.")
        has_inputs = any(wanted.get(member) is not None for member in _INPUT_MEMBERS)
        return Destination(
            kind=kind,
            id=call.entry.id,
            why=clip(text_in(wanted, _WHY_MEMBERS), _LONGEST_WHY),
            suggested_inputs=call.given if has_inputs else None,
            arg_faults=call.checked(self.check_args, under=""),
            missing_args=call.missing(under=""),
        )

    def _alternatives(self, given: Sequence[object], chosen: str) -> Iterator[Alternative]:
        seen = {chosen}
        for place, item in enumerate(given):
            if len(seen) > MOST_ALTERNATIVES or place == _MOST_READ:
                self.note(f"At most {MOST_ALTERNATIVES} alternatives are kept.")
                return
            found = self._alternative(item)
            if found is None:
                continue
            if found.id in seen:
                self.note(f"{found.id} was named more than once.")
                continue
            seen.add(found.id)
            yield found

    def _alternative(self, item: object) -> Alternative | None:
        if isinstance(item, str):
            item = {"id": item}
        if not isinstance(item, Mapping):
            self.note("An alternative was no object and was left out.")
            return None
        found = resolve(text_in(item, _ID_MEMBERS), read_args(item, _INPUT_MEMBERS), self.names)
        if isinstance(found, Miss):
            self.note(f"An alternative was left out: {found.reason}.")
            return None
        why = clip(text_in(item, _WHY_MEMBERS), _LONGEST_WHY)
        return Alternative(kind=_KIND_OF[found.entry.kind], id=found.entry.id, why=why)

    def _gap_warning(
        self, given: object, chosen: Destination, asked: str, rivals: Sequence[str]
    ) -> GapWarning | None:
        """The gap as the model tells it, in its full shape; always one where nothing serves."""
        told = {"missing_capability": given} if isinstance(given, str) else given
        if not isinstance(told, Mapping):
            told = {}
        missing = text_of(told.get("missing_capability"))
        proposed = told.get("proposed_pack")
        is_told = missing.lower() not in _NONE_WORDS or bool(
            isinstance(proposed, Mapping) and proposed
        )
        if not is_told and chosen.kind is not RouteKind.NONE:
            return None
        if missing.lower() in _NONE_WORDS:
            missing = self.intent.strip()
        text = f"{asked[:_LONGEST_CAPABILITY]} {missing}".strip()
        near = nearest(asked, text, names=self.names, suggest=self.suggest, first=rivals)
        return GapWarning(
            missing_capability=clip(missing, _LONGEST_CAPABILITY),
            proposed_pack=self._proposed(proposed if is_told else None),
            suggestions=tuple(id for id in near if id != chosen.id),
        )

    def _proposed(self, given: object) -> ProposedPack:
        """A proposed pack in its full shape; what is not told is said to be open."""
        told = {"name": given} if isinstance(given, str) else given
        if not isinstance(told, Mapping):
            told = {}
        name = text_of(told.get("name"))
        if name and self.names.find(name) is not None:
            self.note(f"The proposed pack {quote(name)} is in the catalog already.")
        return ProposedPack(
            name=clip(name, 200) or _PLACEHOLDER,
            input_schema=_schema(told.get("input_schema")),
            output_schema=_schema(told.get("output_schema")),
            integration_pattern=clip(text_of(told.get("integration_pattern")), _LONGEST_WHY)
            or _PLACEHOLDER,
            why_useful=clip(text_of(told.get("why_useful")), _LONGEST_WHY) or _ASK,
        )


def _find_route(value: object) -> Mapping[str, object] | None:
    gap: Mapping[str, object] | None = None
    for _ in range(_MOST_WRAPPERS + 1):
        if not isinstance(value, Mapping):
            break
        if "recommendation" in value:
            return value if _could_recommend(value["recommendation"]) else None
        gap = gap or (value if _tells_gap(value) else None)
        value = next(
            (value[name] for name in _WRAPPERS if isinstance(value.get(name), Mapping)), None
        )
    return gap


def _tells_gap(members: Mapping[str, object]) -> bool:
    """Whether a gap is told in the shape that is asked for: a text or a schema is not enough."""
    told = members.get("gap_warning")
    if not isinstance(told, Mapping):
        return False
    missing, proposed = text_of(told.get("missing_capability")), told.get("proposed_pack")
    return missing.lower() not in _NONE_WORDS or (isinstance(proposed, Mapping) and bool(proposed))


def _could_recommend(value: object) -> bool:
    """Whether a recommendation may be one of ours: others recommend in sentences."""
    if isinstance(value, str):
        return len(value.split()) < 2
    if isinstance(value, list):
        return all(isinstance(item, Mapping | str) for item in value)
    return value is None or isinstance(value, Mapping)


def _recommended(
    members: Mapping[str, object], reading: _Reading
) -> tuple[Mapping[str, object], Sequence[object]]:
    """The recommendation and the alternatives, however they are listed."""
    wanted, others = members.get("recommendation"), members.get("alternatives")
    if not isinstance(others, list):
        others = [] if others is None else [others]
    if isinstance(wanted, list):
        if len(wanted) > 1:
            reading.note("Several recommendations were given; the first one counts.")
        others = [*wanted[1:], *others]
        wanted = wanted[0] if wanted else None
    if isinstance(wanted, str):
        beside = {
            name: members[name] for name in (*_KIND_MEMBERS, *_INPUT_MEMBERS) if name in members
        }
        wanted = beside | {"id": wanted}
    return (wanted if isinstance(wanted, Mapping) else {}), others


def _none(why: str) -> Destination:
    return Destination(kind=RouteKind.NONE, id="", why=why)


def _schema(value: object) -> Mapping[str, object]:
    """A schema as the model sketched it; what is no object, or cannot be sent on, is left out."""
    return (read_args({"args": value}, ("args",)).args or {}) if value is not None else {}
