"""What-ifs over the API: asked, answered, followed, applied."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.operations.whatif import running
from tests.api.conftest import Door

EDITS = [{"key": "openai/gpt-4o", "changes": {"input_tokens": 10_000}}]


def test_a_what_if_from_its_question_to_its_edit(owner: Door) -> None:
    for number, prompt in enumerate((5_000, 20_000)):
        usage = {"prompt_tokens": prompt, "completion_tokens": 1}
        call = {"id": f"c{number}", "model": "openai/gpt-4o", "usage": usage, "status": "success"}
        assert owner.post("/calls", call).status_code == 201
    asked = owner.post("/what-ifs", {"edits": EDITS, "title": "Less", "since": None})
    assert asked.status_code == 201, asked.json()
    at = f"/what-ifs/{asked.json()['id']}"
    assert (asked.json()["state"], asked.json()["progress"]) == ("waiting", None)

    running.run_all(lambda words, done, of: None)

    found = owner.get(at).json()
    assert (found["state"], found["calls"]["looked_at"]) == ("done", 2)
    assert found["calls"]["over"] == {"was": 0, "now": 1}
    assert found["edits"][0]["changes"][0]["edited"] == 10_000
    items = owner.get(f"{at}/items?figure=over:new").json()
    assert [each["id"] for each in items["items"]] == ["c1"]
    assert (items["looked_at"], items["next"]) == (2, None)
    assert [each["id"] for each in owner.get("/what-ifs").json()["items"]] == [found["id"]]
    resolved = "/budgets/resolve?model=openai/gpt-4o"
    assert owner.get(resolved).json()["budget"]["input_tokens"] != 10_000
    assert owner.post(f"{at}/apply", None).json()["applied_by"] is not None
    assert owner.get(resolved).json()["budget"]["input_tokens"] == 10_000
    assert owner.post(f"{at}/apply", None).status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "edits"),
        ({"edits": []}, "edits"),
        ({"edits": [{"key": "m", "changes": {"tier": "Z"}}]}, "edits.0.changes.tier"),
        ({"edits": [{"key": "m", "changes": {"evidence": "x"}}]}, "edits.0.changes.evidence"),
        ({"edits": EDITS, "since": "2999-01-01T00:00:00Z"}, "since"),
        ({"edits": EDITS, "until": "yesterday"}, "until"),
    ],
)
def test_bad_questions_name_their_field(owner: Door, body: Any, field: str) -> None:
    answer = owner.post("/what-ifs", body)

    assert answer.status_code == 422
    assert field in [each["field"] for each in answer.json()["errors"]]


def test_a_figure_or_a_cursor_that_there_is_none_of_is_refused(owner: Door) -> None:
    at = f"/what-ifs/{owner.post('/what-ifs', {'edits': EDITS}).json()['id']}/items"

    assert owner.get(f"{at}?figure=nothing").status_code == 422
    assert owner.get(f"{at}?figure=cared&cursor=W10").status_code == 422
    assert owner.get(f"{at}?figure=fits&cursor=!").status_code == 422
    assert owner.get("/what-ifs?cursor=W10").status_code == 422
