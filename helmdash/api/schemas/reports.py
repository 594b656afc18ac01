"""Calls as their clients report them, one or many."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.api.parsing import Shape
from helmdash.doors.bodies.fields import STRICT, ClientId
from helmdash.doors.bodies.reports import CallIn, SentIn, TrimIn

# One short transaction; without texts the body stays far below the limit of bodies.
MAX_BATCH = 1000

CALL = Shape(CallIn, also_known=(*SentIn.__annotations__, *TrimIn.__annotations__))


class BatchIn(TypedDict):
    """Calls to record together. Each is judged alone: good ones are stored beside bad ones."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    calls: Annotated[list[Any], Field(max_length=MAX_BATCH)]


BATCH = Shape(BatchIn)


class BatchDoc(TypedDict):
    """BatchIn for the OpenAPI: what the items should be."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    calls: Annotated[
        list[CallIn | Annotated[Any, Field(description="Anything else is rejected, alone.")]],
        Field(max_length=MAX_BATCH),
    ]


class ReconcileIn(TypedDict):
    """Ids a client believes to have recorded."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    ids: Annotated[list[ClientId], Field(max_length=MAX_BATCH)]


RECONCILE = Shape(ReconcileIn)
