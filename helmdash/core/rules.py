"""Which versions of our rules decided what is stored: of a call, of care, of a plan, of a fit.

A shipped rule is frozen; what follows from a newer one may differ. So every stored decision says
under which versions it was made. Rows hold the number of a *rule set*, four bytes, and a table
beside them says what the number stands for (`records.models.RuleSet`). A fit names its versions
in its receipt (core.catalog.trim).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from helmdash.core.agents.contexts import CONTEXT_VERSION
from helmdash.core.agents.reading import AGENTS_VERSION
from helmdash.core.budgets.health import HEALTH_VERSION
from helmdash.core.calls.failures import CLASSIFIER_VERSION
from helmdash.core.calls.usage import USAGE_VERSION
from helmdash.core.care.guidance import TEXTS_VERSION
from helmdash.core.care.remediation import REMEDIATION_VERSION
from helmdash.core.care.reminders import PACKAGE_VERSION
from helmdash.core.care.restarts import RESTART_VERSION
from helmdash.core.conversations.called_tools import CALLED_TOOL_VERSION
from helmdash.core.conversations.fingerprints import CHAIN_VERSION
from helmdash.core.conversations.first_retries import FIRST_RETRY_VERSION
from helmdash.core.conversations.kept_replies import KEPT_REPLY_VERSION
from helmdash.core.conversations.placement import PLACEMENT_VERSION
from helmdash.core.decoding.decoding import DECODING_VERSION
from helmdash.core.fitting.doubt import FILTER_VERSION
from helmdash.core.planning.prompts import PROMPTS_VERSION
from helmdash.core.planning.recovery import RECOVERY_VERSION
from helmdash.core.telemetry.prompts import TELEMETRY_VERSION
from helmdash.core.text.redaction import REDACTION_VERSION
from helmdash.core.truncation.detector import CUTS_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVersions:
    """Versions by subject, and the number that rows hold for all of them together."""

    number: int
    versions: Mapping[str, str]


def rule_set(versions: Mapping[str, str]) -> RuleVersions:
    """The rule set of these versions: the same versions, the same number, in every process.

    The number is the hash's first 31 bits (a column of four bytes, signed on PostgreSQL): of a
    hundred sets in the life of a database, two share one with a chance of 1 in 400,000.
    """
    text = json.dumps(dict(versions), sort_keys=True, separators=(",", ":"))
    digest = blake2b(text.encode(), digest_size=4).digest()
    return RuleVersions(number=int.from_bytes(digest) >> 1, versions=dict(versions))


CALL_RULES = rule_set(
    {
        "agents": AGENTS_VERSION,
        "called_tool": CALLED_TOOL_VERSION,
        "causes": CLASSIFIER_VERSION,
        "chain": CHAIN_VERSION,
        "contexts": CONTEXT_VERSION,
        "cuts": CUTS_VERSION,
        "first_retry": FIRST_RETRY_VERSION,
        "kept_reply": KEPT_REPLY_VERSION,
        "levels": HEALTH_VERSION,
        "placement": PLACEMENT_VERSION,
        "redaction": REDACTION_VERSION,
        "telemetry": TELEMETRY_VERSION,
        "usage": USAGE_VERSION,
    }
)
"""What decided everything that is stored with a call."""

CARE_RULES = rule_set(
    {
        "care": REMEDIATION_VERSION,
        "levels": HEALTH_VERSION,
        "package": PACKAGE_VERSION,
        "restart": RESTART_VERSION,
        "texts": TEXTS_VERSION,
    }
)
"""What decided a guidance, a recorded prompt or a clear, and its words."""

PLAN_RULES = rule_set(
    {
        "causes": CLASSIFIER_VERSION,
        "decoding": DECODING_VERSION,
        "filter": FILTER_VERSION,
        "prompts": PROMPTS_VERSION,
        "recovery": RECOVERY_VERSION,
    }
)
"""What decided a plan or a route and each of its attempts; its fit names its own versions."""
