"""Which role people get by what their identity provider says of them.

Written as `admins=default:owner, dev=shop:editor, *=default:viewer`: a value of the claim, the
project, the role. `*` is everybody who signs in there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from helmdash.core.access.permissions import MemberRole

EVERYBODY = "*"
_RULE = re.compile(r"(?P<value>.+)=(?P<project>[-\w]+):(?P<role>\w+)")
_ORDER = tuple(MemberRole)


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Who has this value in the claim has this role in the project with this slug."""

    value: str
    project: str
    role: MemberRole


def parse_role_rules(text: str) -> tuple[RoleRule, ...]:
    """The rules of a text, in its order. Raises ValueError, which says what a rule looks like."""
    return tuple(_rule(part.strip()) for part in text.split(",") if part.strip())


def roles_of(rules: Iterable[RoleRule], claim: object) -> Mapping[str, MemberRole | None]:
    """By project that any rule names: the greatest role of those that hold; None: none holds.

    claim: what the provider says, a text or a list of texts; anything else says nothing.
    """
    said = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    found: dict[str, MemberRole | None] = {}
    for rule in rules:
        before = found.setdefault(rule.project, None)
        holds = rule.value == EVERYBODY or rule.value in said
        if holds and (before is None or _ORDER.index(rule.role) > _ORDER.index(before)):
            found[rule.project] = rule.role
    return found


def _rule(text: str) -> RoleRule:
    read = _RULE.fullmatch(text)
    if read is None or read["role"] not in set(MemberRole):
        raise ValueError(
            f"{text!r} is no rule; write value=project:role, with viewer, editor or owner"
        )
    return RoleRule(read["value"].strip(), read["project"], MemberRole(read["role"]))
