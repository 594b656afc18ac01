"""How a project cares for conversations through the gateway, and in which words."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.records.models import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class CareSettings:
    """The switch, and own texts; empty stands for the shipped one."""

    remediation: bool
    soft_text: str
    hard_text: str
    critical_text: str


def care_settings(*, project_id: int) -> CareSettings:
    """The settings of a project. One query. Raises Project.DoesNotExist."""
    names = tuple(CareSettings.__slots__)
    values = Project.objects.values_list(*names).get(pk=project_id)
    return CareSettings(**dict(zip(names, values, strict=True)))
