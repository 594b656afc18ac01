"""Windows that refusals of our own taught are forgotten: they were budgets, and no windows.

With the budget mode `enforce` a request is refused in its vendor's words, and the budget in them was
learned as the window of the model. In Ollama's words, ours or a server's own, it was the tokens that
were too many. Where a server had named its window before, that was overwritten: it is learned again
with the next refusal.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

_OWN_CODE, _OWN_WORDS, _EXCESS = "over_budget", "HelmDash's budget for ", "context length by "


def forget(apps: Any, schema_editor: Any) -> None:
    """A look at each window that a refusal taught, some hundred at most, and at its call."""
    windows, names, calls = (
        apps.get_model("records", name)._base_manager.using(schema_editor.connection.alias)
        for name in ("LearnedWindow", "CallName", "Call")
    )
    for window in windows.filter(source="refusal").exclude(call_name=""):
        named = names.filter(project_id=window.project_id, name=window.call_name)
        for pk, started_at in named.values_list("call_id", "started_at"):
            told = calls.filter(project_id=window.project_id, started_at=started_at, pk=pk)
            for code, message in told.values_list("error_code", "error_message"):
                if code == _OWN_CODE or _OWN_WORDS in message or _EXCESS in message:
                    window.delete()


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0063_alert_fullness"),
    ]

    operations = [migrations.RunPython(forget, migrations.RunPython.noop)]
