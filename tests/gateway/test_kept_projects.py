"""When an upstream's account may hold what is another project's."""

from __future__ import annotations

from helmdash.queries.calls.kept_replies import is_only_project
from tests.factories import make_project


def test_with_one_project_nothing_is_anothers(db: None) -> None:
    make_project()
    assert is_only_project()
    make_project(slug="demo", is_demo=True)
    assert is_only_project()
    make_project(slug="elsewhere")
    assert not is_only_project()
