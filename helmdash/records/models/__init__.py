"""The tables, one module for each aggregate.

`project` comes first in every key and index of the big tables and in every filter, so that calls
can be partitioned by time or distributed by project without a rewrite.
"""

from __future__ import annotations

from helmdash.records.models.access import (
    ApiKey,
    BudgetMode,
    Membership,
    Payload,
    Project,
    RoleChoices,
    ScopeChoices,
)
from helmdash.records.models.alerts import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertMessage,
    AlertRule,
    LagSample,
)
from helmdash.records.models.audit import AuditEntry
from helmdash.records.models.budgets import Budget, BudgetAlias
from helmdash.records.models.care import Guidance, PendingPrompt, Reminder
from helmdash.records.models.catalog import CatalogRevision
from helmdash.records.models.client_events import ClientEvent
from helmdash.records.models.conversations import (
    Call,
    CallName,
    CallPayload,
    Conversation,
    ConversationMark,
    Round,
    StoredMessage,
)
from helmdash.records.models.doors import KeptAnswer, Knock, SignInThrottle
from helmdash.records.models.fitting import Fit
from helmdash.records.models.health import HealthChange
from helmdash.records.models.learned.suggestions import LearnedModel, Suggestion
from helmdash.records.models.learned.trials import Trial, TrialCall
from helmdash.records.models.learned.whatif import WhatIf
from helmdash.records.models.learned.windows import LearnedWindow
from helmdash.records.models.plans import PlanAttempt, PlanCatalog, PlanRecord, PlanStep
from helmdash.records.models.rules import RuleSet
from helmdash.records.models.saved_views import FirstView, SavedView
from helmdash.records.models.sessions import Look, OidcIdentity, SignedIn
from helmdash.records.models.telemetry import AwaitedSpan
from helmdash.records.models.triage import FailureMark, TriageWord
from helmdash.records.models.upkeep.exporting import Exporter, PendingExport
from helmdash.records.models.upkeep.jobs import Job
from helmdash.records.models.upkeep.recorder import RecorderLedger
from helmdash.records.models.upkeep.rollups import Rollup, RollupState, UncountedCalls
from helmdash.records.models.upkeep.schema import SchemaMark
from helmdash.records.models.upkeep.weekly import WeeklySubscription
from helmdash.records.models.upstreams import Upstream

__all__ = [
    "Alert",
    "AlertChannel",
    "AlertDelivery",
    "AlertMessage",
    "AlertRule",
    "ApiKey",
    "AuditEntry",
    "AwaitedSpan",
    "Budget",
    "BudgetAlias",
    "BudgetMode",
    "Call",
    "CallName",
    "CallPayload",
    "CatalogRevision",
    "ClientEvent",
    "Conversation",
    "ConversationMark",
    "Exporter",
    "FailureMark",
    "FirstView",
    "Fit",
    "Guidance",
    "HealthChange",
    "Job",
    "KeptAnswer",
    "Knock",
    "LagSample",
    "LearnedModel",
    "LearnedWindow",
    "Look",
    "Membership",
    "OidcIdentity",
    "Payload",
    "PendingExport",
    "PendingPrompt",
    "PlanAttempt",
    "PlanCatalog",
    "PlanRecord",
    "PlanStep",
    "Project",
    "RecorderLedger",
    "Reminder",
    "RoleChoices",
    "Rollup",
    "RollupState",
    "Round",
    "RuleSet",
    "SavedView",
    "SchemaMark",
    "ScopeChoices",
    "SignInThrottle",
    "SignedIn",
    "StoredMessage",
    "Suggestion",
    "TriageWord",
    "Trial",
    "TrialCall",
    "UncountedCalls",
    "Upstream",
    "WeeklySubscription",
    "WhatIf",
]
