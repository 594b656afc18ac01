"""Conversations, their rounds, and every recorded call.

List pages read `Call` and `Conversation` only: narrow rows. Texts lie in `CallPayload` and, for
messages that clients resend with every call, once each in `StoredMessage`.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.budgets.lines import DEFAULT_OPTIMAL_MAX_TOKENS
from helmdash.core.budgets.model_names import KEY_CHARS
from helmdash.core.calls.capture import CONTEXT_CHARS
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.conversations.clients import NAME_CHARS, VERSION_CHARS
from helmdash.records.fields import count_field, name_field, one_of, word_field
from helmdash.records.long_lived import IsLongLived
from helmdash.records.models.access import Project
from helmdash.records.models.rules import rules_field

LEVEL_WORDS = [level.value for level in Level]
ROUND_OPENERS = ["", "clear", "compaction"]
STATUSES = ["success", "error", "cancelled"]


class Conversation(models.Model):
    """Calls of one dialogue, with the standing of its newest call."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=255, help_text="The id its calls carry.")
    # By its name, for a sub-agent's call may be reported before its parent's; no row need be there.
    parent = name_field(255, "Conversation that it is a part of, as a sub-agent's is.")
    model = models.CharField(max_length=255, help_text="Model of the newest call.")
    model_key = name_field(KEY_CHARS, "What figures and filters know that model by.")
    client_name = name_field(NAME_CHARS, "Program that made the newest call.")
    client_version = name_field(VERSION_CHARS)
    client_window = count_field("Window (tokens) that the newest call's client counts on.")
    round_number = models.PositiveIntegerField(default=1)
    generation = models.PositiveBigIntegerField(
        default=0, help_text="Number of the newest main call; the count of main calls."
    )
    side_calls = count_field("Calls beside it, which have no number. Null: none.")
    earlier_attempts = count_field("Calls whose generation a later attempt took. Null: none.")
    context = name_field(
        CONTEXT_CHARS, "How its program calls the context that its newest calls were made in."
    )
    client_compacted_at = models.DateTimeField(
        null=True, help_text="When its client last said that it compacted the history."
    )
    client_refusal = name_field(400, "What its client refused by itself since the newest call.")
    level = models.CharField(max_length=10, default=Level.UNKNOWN.value)
    severity = models.PositiveSmallIntegerField(default=LEVELS[Level.UNKNOWN].severity)
    level_reason = word_field(32)
    # Unknown keeps the last known level visible beside it (ADR 7).
    known_level = word_field(10)
    prompt_tokens = count_field()
    limit_tokens = count_field()
    limit_source = word_field(16)
    optimal_max_tokens = models.PositiveBigIntegerField(default=DEFAULT_OPTIMAL_MAX_TOKENS)
    critical_max_tokens = count_field()
    # Why somebody should look at it (core.conversations.attention), and what that is told by.
    attention = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="How much somebody should look at it; 0: not at all."
    )
    recent_failures = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="The newest calls as bits, set where one failed."
    )
    latest_cause = name_field(24, "Failure cause of the newest call.")
    cut_generation = count_field("The newest call of the open round that was probably cut.")
    held_level = name_field(10, "Level that care holds in the open round.")
    snoozed_until = models.DateTimeField(null=True, help_text="Until then nobody is to look at it.")
    snoozed_rank = models.PositiveSmallIntegerField(null=True, help_text="Its attention before.")
    failures = models.PositiveBigIntegerField(default=0, help_text="Calls with a failure cause.")
    trims = models.PositiveBigIntegerField(default=0, help_text="Calls whose prompt was cut.")
    started_at = models.DateTimeField()
    latest_at = models.DateTimeField(help_text="When the newest call started.")
    # When the round that is open was begun by a clear, and the last generation that was under way
    # then: its late report belongs to the round before (core.conversations.placement).
    cleared_at = models.DateTimeField(null=True)
    late_until = models.PositiveBigIntegerField(null=True)
    is_round_empty = models.BooleanField(default=False)
    # By what the newest call is known when it is asked for again
    # (core.conversations.repeated_streams).
    newest_stream = models.JSONField(null=True)
    # What tells a silent cut: the sizes of the newest calls (core.truncation.detector).
    trace = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name"],
                # Equality and prefix search ("starts with") by the same index.
                opclasses=["int8_ops", "varchar_pattern_ops"],
                name="conversation_name",
            ),
            one_of("conversation", "level", LEVEL_WORDS),
            one_of("conversation", "known_level", ["", *LEVEL_WORDS]),
        ]
        indexes = [
            # The list, newest first, and its time range. A part of an id is looked for in the index
            # alone, in a third of the time that rows take.
            models.Index(
                fields=["project", "latest_at", "id", "name"], name="conversation_by_time_and_name"
            ),
            # The level filter and the four counters of the overview.
            models.Index(
                fields=["project", "severity", "latest_at", "id"], name="conversation_by_severity"
            ),
            # Those that need somebody, the worst first: the overview and the list. Most
            # conversations need nobody, and are not in it.
            models.Index(
                fields=["project", "attention", "latest_at", "id"],
                condition=Q(attention__gt=0),
                name="conversation_by_attention",
            ),
            # The model filter.
            models.Index(
                fields=["project", "model_key", "latest_at", "id"], name="conversation_by_model_key"
            ),
            # The client filter.
            models.Index(
                fields=["project", "client_name", "latest_at", "id"],
                condition=Q(client_name__isnull=False),
                name="conversation_by_client",
            ),
            # The list up to some time (queries.conversations.in_range).
            models.Index(
                fields=["project", "latest_at", "id"],
                condition=Q(IsLongLived("latest_at", "started_at")),
                name="long_conversation_by_time",
            ),
            # Snoozes that are over, in any project.
            models.Index(
                fields=["snoozed_until"],
                condition=Q(snoozed_until__isnull=False),
                name="conversation_by_snooze",
            ),
            # More than one call, newest first, also of one level: calls of scripts that ask one
            # question are soon the most by far.
            models.Index(
                fields=["project", "latest_at", "id"],
                condition=Q(generation__gt=1),
                name="grown_conversation_by_time",
            ),
            # The sub-agents of a conversation.
            models.Index(
                fields=["project", "parent", "id"],
                condition=Q(parent__isnull=False),
                name="conversation_by_parent",
            ),
            models.Index(
                fields=["project", "severity", "latest_at", "id"],
                condition=Q(generation__gt=1),
                name="grown_by_severity",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Round(models.Model):
    """The calls between two fresh starts of a conversation's context."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="rounds", db_index=False
    )
    number = models.PositiveIntegerField()
    first_generation = models.PositiveBigIntegerField()
    latest_generation = models.PositiveBigIntegerField()
    peak_prompt_tokens = count_field("Largest reported prompt of the round.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    # What gave the conversation its fresh start; empty for its first round.
    opened_by = word_field(16)
    care = models.JSONField(
        null=True, help_text="Where remediation stands (core.care.remediation)."
    )
    # How a gateway goes on after a clear: what of the client's history is left out, and the
    # re-entry package in its place, sealed, for it may hold texts.
    restart = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                # The conversation first: deleting one looks here for what refers to it.
                fields=["conversation", "number", "project"],
                name="round_number",
            ),
            one_of("round", "opened_by", ROUND_OPENERS),
        ]
        indexes = [
            # queries.marks: clears within a range of time; few rounds are opened by one.
            models.Index(
                fields=["project", "started_at"],
                condition=models.Q(opened_by="clear"),
                name="round_clears",
            ),
            # queries.evidence.net_value: fresh starts of both kinds.
            models.Index(
                fields=["project", "started_at", "id"],
                condition=~Q(opened_by=""),
                name="round_fresh_starts",
            ),
        ]

    def __str__(self) -> str:
        return f"round {self.number}"


class Call(models.Model):
    """One request to a model and what came back: the facts, our verdicts, and what we judged by."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=128, help_text="The client's own id, or one we made.")
    # No constraint of the database's: it would look a conversation up for each call that comes, and
    # for each conversation that goes through all the calls there are (operations.retention).
    conversation = models.ForeignKey(
        Conversation,
        null=True,
        on_delete=models.CASCADE,
        related_name="calls",
        db_index=False,
        db_constraint=False,
    )
    round_number = models.PositiveIntegerField(null=True)
    generation = models.PositiveBigIntegerField(null=True)
    # Null: main, or by code that does not know lanes yet.
    lane = name_field(8, "main, or side: beside the conversation (core.calls.lanes).")
    routes = name_field(64, "Doors that told of it (core.calls.routes).")
    attempt = models.PositiveIntegerField(default=1)
    attempt_of = count_field("The generation that a later attempt took over. Null: none did.")

    model = models.CharField(max_length=255)
    model_key = name_field(
        KEY_CHARS, "What figures and filters know it by (core.budgets.model_names)."
    )
    client_name = name_field(NAME_CHARS, "Program that made the call.")
    client_version = name_field(VERSION_CHARS)
    client_window = count_field("Window (tokens) that the client counts on.")
    upstream_model = word_field(255)
    provider = word_field(64)
    pack = word_field(128)
    purpose = models.CharField(max_length=32, default="chat")
    correlation_id = word_field(128)
    caller = word_field(128)
    prompt_variant = word_field(32)
    response_format = word_field(32)

    prompt_tokens = count_field()
    completion_tokens = count_field()
    total_tokens = count_field()
    cached_tokens = count_field()
    cache_write_tokens = count_field()
    reasoning_tokens = count_field()

    status = models.CharField(max_length=10)
    http_status = models.PositiveSmallIntegerField(null=True)
    finish_reason = word_field(16)
    finish_reason_raw = word_field(64)
    error_code = word_field(128)
    error_message = word_field(2000)
    cause = word_field(24)
    cause_rule = word_field(48)
    cause_advice = word_field(20)
    cause_detail = word_field(400)

    raw_content_bytes = count_field("UTF-8 bytes of the answer before anything was stripped.")
    content_bytes = count_field("The same after reasoning was stripped.")
    latency_ms = count_field()
    ttft_ms = count_field("Time to the first token.")
    overhead_ms = models.FloatField(null=True)

    level = models.CharField(max_length=10)
    level_reason = word_field(32)
    limit_tokens = count_field()
    limit_source = word_field(16)
    optimal_max_tokens = models.PositiveBigIntegerField()
    critical_max_tokens = count_field()
    budget_key = word_field(255)

    fit_name = word_field(64)
    trim_before_bytes = count_field()
    trim_after_bytes = count_field()
    sent_bytes = count_field()
    sent_messages = count_field()
    sent_tools_bytes = count_field()
    sent_images = count_field()
    # What fills the prompt (core.calls.composition), beside sent_tools_bytes.
    sent_system_bytes = count_field()
    sent_user_bytes = count_field()
    sent_assistant_bytes = count_field()
    sent_results_bytes = count_field("Of results of tools.")
    sent_image_bytes = count_field()
    sent_other_bytes = count_field("Of parts that only one format knows.")
    sent_results_by_tool = models.JSONField(null=True, blank=True)
    estimate_tokens = count_field("Our estimate of the prompt, from the bytes sent.")
    prompt_hash = word_field(40)
    placed_by = word_field(32)  # the rule that chose the conversation, with its version
    rules = rules_field()  # the versions of all others that decided

    started_at = models.DateTimeField()
    recorded_at = models.DateTimeField()

    class Meta:
        constraints = [
            # A side call belongs to a conversation without a number; so does an attempt whose
            # number a later one took.
            models.CheckConstraint(
                condition=Q(conversation__isnull=True, generation__isnull=True)
                | Q(conversation__isnull=False, generation__isnull=False)
                | Q(generation__isnull=True, lane__isnull=False, lane=Lane.SIDE.value)
                | Q(generation__isnull=True, conversation__isnull=False, attempt_of__isnull=False),
                name="call_generation_with_conversation",
            ),
            one_of("call", "status", STATUSES),
            one_of("call", "level", LEVEL_WORDS),
            one_of("call", "finish_reason", ["", *(reason.value for reason in FinishReason)]),
            one_of("call", "cause", ["", *(cause.value for cause in FailureCause)]),
        ]
        indexes = [
            # The list, newest first.
            models.Index(fields=["project", "started_at", "id"], name="call_by_time"),
            # The calls of one conversation, also newest first.
            models.Index(
                fields=["project", "conversation", "started_at", "id"],
                condition=Q(conversation__isnull=False),
                name="call_by_conversation",
            ),
            models.Index(
                fields=["project", "conversation", "generation"],
                condition=Q(conversation__isnull=False),
                name="call_by_generation",
            ),
            # One index for each filter of the list: a rare value must not walk a million rows.
            models.Index(
                fields=["project", "model_key", "started_at", "id"], name="call_by_model_key"
            ),
            models.Index(
                fields=["project", "client_name", "started_at", "id"],
                condition=Q(client_name__isnull=False),
                name="call_by_client",
            ),
            models.Index(fields=["project", "level", "started_at", "id"], name="call_by_level"),
            models.Index(fields=["project", "purpose", "started_at", "id"], name="call_by_purpose"),
            models.Index(fields=["project", "pack", "started_at", "id"], name="call_by_pack"),
            # What a caller's packs were used for lately: its learned defaults.
            models.Index(
                fields=["project", "caller", "started_at"],
                condition=~Q(pack=""),
                name="call_by_packing_caller",
            ),
            # Most calls end in "stop", which the time index finds at once.
            models.Index(
                fields=["project", "finish_reason", "started_at", "id"],
                condition=~Q(finish_reason="stop"),
                name="call_by_finish_reason",
            ),
            # All that failed, whatever the cause.
            models.Index(
                fields=["project", "started_at", "id"],
                condition=~Q(cause=""),
                name="call_failed",
            ),
            models.Index(
                fields=["project", "cause", "started_at", "id"],
                condition=~Q(cause=""),
                name="call_by_cause",
            ),
            # Calls that were sent a fitted catalog (queries.evidence.net_value): few are.
            models.Index(
                fields=["project", "started_at", "id"],
                condition=~Q(fit_name="") | Q(trim_before_bytes__isnull=False),
                name="call_fitted",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CallName(models.Model):
    """An id by which a call is known, and where the call lies: read before the calls are.

    Here is what must be unique whatever time a call is of: ids of a project, and the numbers in a
    conversation. Not all names have a call any more: retention takes them away after it.
    """

    pk = models.CompositePrimaryKey("project_id", "name")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=128, help_text="The client's own id, or one we made.")
    call_id = models.BigIntegerField()
    started_at = models.DateTimeField(help_text="The call's: in which partition it is.")
    conversation_id = models.BigIntegerField(null=True)
    # Null also for a second name of the same call, as is the correlation id.
    generation = models.PositiveBigIntegerField(null=True)
    correlation_id = models.CharField(max_length=128, null=True)

    class Meta:
        constraints = [
            # A conversation's calls are numbered without gap or double.
            models.UniqueConstraint(
                fields=["project", "conversation_id", "generation"],
                condition=Q(conversation_id__isnull=False),
                name="call_generation",
            )
        ]
        indexes = [
            # A filter pass and its plan are one story.
            models.Index(
                fields=["project", "correlation_id"],
                opclasses=["int8_ops", "varchar_pattern_ops"],
                condition=Q(correlation_id__isnull=False),
                name="call_name_by_correlation",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ConversationMark(models.Model):
    """A trace by which a conversation's next call is recognized (core.conversations.chains)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # Kind and hash in one word: see core.conversations.fingerprints.
    hash = models.CharField(max_length=48)
    # The generation that left it: by the newest call's, continuing is told from branching off.
    generation = models.PositiveBigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "hash", "conversation"], name="conversation_mark_hash"
            )
        ]
        indexes = [
            # Deleting a conversation looks here for what refers to it.
            models.Index(fields=["conversation"], name="mark_by_conversation"),
        ]

    def __str__(self) -> str:
        return self.hash


class CallPayload(models.Model):
    """What no list needs: raw usage, metadata, cut labels, attempts and, if kept, the texts."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    started_at = models.DateTimeField(help_text="The call's: in which partition it is.")
    call = models.OneToOneField(
        Call,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="payload",
        db_constraint=False,
    )
    usage_raw = models.JSONField(null=True)
    metadata = models.JSONField(null=True)
    trim_dropped = models.JSONField(null=True)
    attempts = models.JSONField(null=True)
    message_hashes = models.JSONField(null=True, help_text="StoredMessage hashes, in order.")
    offered = models.JSONField(
        null=True, help_text="Tools that were sent and their bytes (core.calls.tool_schemas)."
    )
    cut = models.JSONField(
        null=True, help_text="Why a silent cut is suspected (core.truncation.detector)."
    )
    # Null: not kept. Empty: the model answered nothing.
    content = models.TextField(null=True)

    def __str__(self) -> str:
        return f"payload of {self.call_id}"


class StoredMessage(models.Model):
    """One message, stored once however often clients resend it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    hash = models.CharField(max_length=40)
    body = models.JSONField()
    # When a recorded call last carried it, to the day: what retention goes by.
    latest_seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "hash"], name="stored_message_hash")
        ]
        indexes = [
            models.Index(fields=["project", "latest_seen_at"], name="stored_message_by_time")
        ]

    def __str__(self) -> str:
        return self.hash
