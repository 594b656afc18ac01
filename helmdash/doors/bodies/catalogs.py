"""Catalogs as they come: of any form, for `core.catalog` checks them and names their faults."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from helmdash.core.catalog.schema import CATALOG_SCHEMA

AnyCatalog = Annotated[Any, WithJsonSchema(CATALOG_SCHEMA)]
OptionalCatalog = Annotated[Any, WithJsonSchema({"anyOf": [CATALOG_SCHEMA, {"type": "null"}]})]
