"""The sentence of a verdict once the words that it quotes are to be gone."""

from __future__ import annotations

import pytest

from helmdash.core.calls.failures import RULES, CauseRule
from helmdash.core.calls.kept_details import kept_detail

QUOTED = "HTTP 500, bad: the prompt (said) SECRET; and more"
FIELDS = {"finish": "odd", "spent": "12 output tokens", "seen": "9 bytes", "unusable": "no steps"}


def said(rule: CauseRule) -> str:
    return rule.detail.format(error=QUOTED, **FIELDS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_rule_goes_on_quoting_and_what_it_says_itself_stays(rule: CauseRule) -> None:
    kept = kept_detail(said(rule), rule=rule.id, http_status=500, error_code="rate_limit_exceeded")

    assert "SECRET" not in kept
    words = "HTTP 500, rate_limit_exceeded, its words are no longer kept"
    assert kept == rule.detail.format(error=words, **FIELDS)
    again = kept_detail(kept, rule=rule.id, http_status=500, error_code="rate_limit_exceeded")
    assert again == kept


@pytest.mark.parametrize(
    ("detail", "rule", "kept"),
    [
        ("The provider failed (HTTP 500, SECRET).", "of.an.older.release", "The provider failed."),
        ("The provider failed: nothing.", "of.an.older.release", "The provider failed: nothing."),
        ("The [masked] failed (SECRET).", "upstream.unnamed", "The [masked] failed."),
        ("", "", ""),
    ],
)
def test_what_no_rule_of_now_says_is_cut_at_its_bracket(detail: str, rule: str, kept: str) -> None:
    assert kept_detail(detail, rule=rule, http_status=None, error_code="") == kept
