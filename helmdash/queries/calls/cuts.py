"""A model's newest calls, as far as they say how many bytes its tokens stand for."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from helmdash.core.budgets.health import HealthReason
from helmdash.core.truncation.calibration import Sample
from helmdash.core.truncation.sizes import LEAST_BYTES, LEAST_TOKENS
from helmdash.records.models import Call


def newest_samples(
    *,
    project_id: int,
    model_key: str,
    upstream_model: str,
    limit: int,
    without: Collection[int] = (),
) -> tuple[Sample, ...]:
    """The newest calls of the model, newest first. One query, served by the index of models.
    without: calls that are as if they were not stored, by number.

    Calls that say nothing (failed, short, with images, uncounted) are among the `limit` that are
    read, so that a model of which nothing can be learned costs no more than another.
    """
    rows = Call.objects.filter(project_id=project_id, model_key=model_key)
    found = rows.order_by("-started_at", "-id").values_list(
        "id",
        "conversation_id",
        "upstream_model",
        "sent_bytes",
        "prompt_tokens",
        "sent_images",
        "status",
        "level_reason",
        "trim_after_bytes",
    )[: limit + len(without)]
    counted = islice((row for row in found if row[0] not in without), limit)
    return tuple(
        Sample(
            conversation=conversation,
            sent_bytes=size,
            tokens=tokens,
            is_learned=reason != HealthReason.SUSPECTED_CUT.value and trimmed is None,
        )
        for _, conversation, upstream, size, tokens, images, status, reason, trimmed in counted
        if upstream == upstream_model
        and status == "success"
        and not images
        and size is not None
        and size >= LEAST_BYTES
        and tokens is not None
        and tokens >= LEAST_TOKENS
    )
