"""Metrics of recorded calls, for Prometheus: in the names of the GenAI conventions, old and new,
and in ours for what only HelmDash knows.

Source: docs/sources.md, GenAI semantic conventions. Dashboards of
today read the old names. Labels name models and providers, never conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric

from helmdash.core.budgets.levels import Level
from helmdash.core.rollups.buckets import bounds
from helmdash.core.rollups.figures import SHARE_UNIT, Distribution, Tokens
from helmdash.queries.exporting import ExportState
from helmdash.queries.usage_totals import ModelTotals, UsageTotals

# The boundaries that the conventions advise.
_TOKEN_EDGES = tuple(4**power for power in range(14))
_SECOND_EDGES = tuple(round(0.01 * 2**power, 2) for power in range(14))
# Shares of the window: tenths, closer to the end, and beyond it.
_FULLNESS_EDGES = (*(round(0.1 * tenth, 1) for tenth in range(1, 9)), 0.85, 0.9, 0.95, 1.0, 1.5)
_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
_SUMS = (
    (Tokens.PROMPT, "input_tokens", "Tokens of prompts, cached ones included."),
    (Tokens.COMPLETION, "output_tokens", "Tokens of replies."),
    (Tokens.CACHED, "cache_read_input_tokens", "Tokens of prompts that came from a cache."),
    (Tokens.CACHE_WRITE, "cache_write_input_tokens", "Tokens that were written to a cache."),
    (Tokens.REASONING, "reasoning_output_tokens", "Tokens of replies spent on reasoning."),
)


def of_usage(totals: UsageTotals) -> Iterator[Metric]:
    """What recorded calls used, by model."""
    for tokens, name, says in _SUMS:
        counter = CounterMetricFamily(f"gen_ai_client_inference_usage_{name}", says, labels=_LABELS)
        for each in totals.models:
            if each.told[tokens]:
                counter.add_metric(_labels(each), each.tokens[tokens])
        yield counter
    old = HistogramMetricFamily(
        "gen_ai_client_token_usage",
        "Tokens of calls.",
        labels=[*_LABELS, "gen_ai_token_type"],
    )
    for each in totals.models:
        _add(old, [*_labels(each), "input"], each, Distribution.PROMPT_TOKENS, _TOKEN_EDGES)
        _add_replies(old, [*_labels(each), "output"], each)
    yield old
    replies = HistogramMetricFamily(
        "gen_ai_client_inference_operation_output_tokens", "Tokens of replies.", labels=_LABELS
    )
    for each in totals.models:
        _add_replies(replies, _labels(each), each)
    yield replies
    for name, says, distribution, edges in (
        (
            "inference_operation_input_tokens",
            "Tokens of prompts.",
            Distribution.PROMPT_TOKENS,
            _TOKEN_EDGES,
        ),
        (
            "operation_duration_seconds",
            "How long calls took.",
            Distribution.LATENCY_MS,
            _SECOND_EDGES,
        ),
        (
            "inference_duration_seconds",
            "How long calls took.",
            Distribution.LATENCY_MS,
            _SECOND_EDGES,
        ),
        (
            "operation_time_to_first_chunk_seconds",
            "Until the first token of a stream.",
            Distribution.TTFT_MS,
            _SECOND_EDGES,
        ),
    ):
        family = HistogramMetricFamily(f"gen_ai_client_{name}", says, labels=_LABELS)
        for each in totals.models:
            _add(family, _labels(each), each, distribution, edges)
        yield family
    yield from _of_judgement(totals)


def of_exports(states: Sequence[ExportState], ages: Mapping[str, float]) -> Iterator[Metric]:
    """How far behind each exporter is. ages: seconds that the oldest call has waited."""
    waiting = GaugeMetricFamily(
        "helmdash_export_waiting_calls", "Calls not exported yet.", labels=["exporter"]
    )
    lag = GaugeMetricFamily(
        "helmdash_export_lag_seconds",
        "Since the oldest call that waits was recorded; 0 where none waits.",
        labels=["exporter"],
    )
    became = CounterMetricFamily(
        "helmdash_export_calls",
        "Calls by what became of them: exported, refused.",
        labels=["exporter", "outcome"],
    )
    failures = GaugeMetricFamily(
        "helmdash_export_failures", "Tries that failed in a row.", labels=["exporter"]
    )
    for state in states:
        waiting.add_metric([state.name], state.waiting)
        lag.add_metric([state.name], ages[state.name])
        became.add_metric([state.name, "exported"], state.exported)
        became.add_metric([state.name, "refused"], state.refused)
        failures.add_metric([state.name], state.failures)
    yield from (waiting, lag, became, failures)


def _of_judgement(totals: UsageTotals) -> Iterator[Metric]:
    calls = CounterMetricFamily(
        "helmdash_calls",
        "Recorded calls, by model and failure cause; empty: none.",
        labels=["model", "cause"],
    )
    cuts = CounterMetricFamily(
        "helmdash_suspected_cuts", "Calls whose prompt was probably cut upstream.", labels=["model"]
    )
    fullness = HistogramMetricFamily(
        "helmdash_context_fullness_ratio", "Prompts over their model's limit.", labels=["model"]
    )
    for each in totals.models:
        for cause, count in sorted(each.causes.items()):
            calls.add_metric([each.model, cause], count)
        cuts.add_metric([each.model], each.cuts)
        _add(
            fullness,
            [each.model],
            each,
            Distribution.FULLNESS,
            _FULLNESS_EDGES,
        )
    held = GaugeMetricFamily(
        "helmdash_conversations", "Conversations, by the level they stand at.", labels=["level"]
    )
    for level in Level:
        held.add_metric([level.value], totals.levels.get(level, 0))
    rounds = CounterMetricFamily(
        "helmdash_compactions",
        "Fresh starts of conversations' contexts, by who made them: client, helmdash.",
        labels=["by"],
    )
    for opened_by, who in (("compaction", "client"), ("clear", "helmdash")):
        rounds.add_metric([who], totals.rounds.get(opened_by, 0))
    yield from (calls, cuts, fullness, held, rounds)


_UNITS = {
    Distribution.PROMPT_TOKENS: 1,
    Distribution.FULLNESS: SHARE_UNIT,
    Distribution.LATENCY_MS: 1000,
    Distribution.TTFT_MS: 1000,
}


def _add(
    family: HistogramMetricFamily,
    labels: Sequence[str],
    totals: ModelTotals,
    distribution: Distribution,
    edges: Sequence[float],
) -> None:
    """A model's histogram: each of our buckets counts where its middle lies; 0.4 % off at most."""
    counts = totals.distributions[distribution]
    if not counts:
        return
    unit = _UNITS[distribution]
    middles = {bucket: sum(bounds(bucket)) / 2 / unit for bucket in counts}
    buckets: list[tuple[str, float]] = [
        (str(float(edge)), sum(n for bucket, n in counts.items() if middles[bucket] <= edge))
        for edge in edges
    ]
    buckets.append(("+Inf", sum(counts.values())))
    whole = sum(middles[bucket] * n for bucket, n in counts.items())
    if distribution is Distribution.PROMPT_TOKENS:
        whole = totals.tokens[Tokens.PROMPT]  # exact
    family.add_metric(labels, buckets, whole)


def _add_replies(family: HistogramMetricFamily, labels: Sequence[str], totals: ModelTotals) -> None:
    """How long a model's replies were. Of those that neither ended nor were cut off the sum and the
    number are known: they count at their mean."""
    told, whole = totals.told[Tokens.COMPLETION], totals.tokens[Tokens.COMPLETION]
    if not told:
        return
    spread = [(sum(bounds(bucket)) / 2, n) for bucket, n in totals.replies.items()]
    others = told - sum(n for _, n in spread)
    buckets: list[tuple[str, float]] = []
    # A call may have been counted between the two looks at the rollups.
    if spread and others >= 0:
        rest = whole - sum(middle * n for middle, n in spread)
        spread.append((max(rest / others, 0.0) if others else 0.0, others))
        buckets = [
            (str(float(edge)), sum(n for middle, n in spread if middle <= edge))
            for edge in _TOKEN_EDGES
        ]
    family.add_metric(labels, [*buckets, ("+Inf", told)], whole)


def _labels(totals: ModelTotals) -> list[str]:
    provider, slash, _ = totals.model.partition("/")
    return ["chat", provider if slash else "_OTHER", totals.model]
