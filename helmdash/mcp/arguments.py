"""Arguments of tools: checked to the letter, every fault named (doors.validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from helmdash.doors import validation
from helmdash.doors.validation import BadFields, unstorable
from helmdash.mcp.problems import invalid

Value = TypeVar("Value")

_WHOLE = "arguments"


class ArgumentShape(Generic[Value]):
    """What the arguments of a tool must look like: a TypedDict, compiled once."""

    def __init__(self, kind: type[Value]) -> None:
        self._shape = validation.Shape(kind)

    def read(self, arguments: Mapping[str, Any]) -> Value:
        """The arguments as the tool takes them. Raises Problem that names each wrong one."""
        faults = unstorable(arguments, whole=_WHOLE)
        if faults:
            raise invalid(faults)
        try:
            return self._shape.check(dict(arguments), whole=_WHOLE)
        except BadFields as error:
            raise invalid(error.faults) from None
