"""The shipped budgets: helmdeck ADR 050's and 051's to the last figure, and every spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import BudgetSpec, Tier
from helmdash.core.budgets.shipped import ShippedError, load_shipped

FILE = Path(__file__).parents[3] / "fixtures" / "budgets.toml"
ROWS, ALIASES = load_shipped(FILE.read_text(encoding="utf-8"))
TABLE = BudgetTable(ROWS, ALIASES)

# Key, input, output, catalog bytes, tier, flags, cached USD per million tokens.
# F LLM filter, H hybrid reasoning, S strict JSON, P prefix cache.
SEED_ROWS = """
anthropic/claude-opus- 200000 8000 0 A SP 7.5
anthropic/claude-sonnet- 200000 8000 0 A SP 1.5
anthropic/claude-3.7-sonnet 200000 8000 0 A HSP 1.5
anthropic/claude-haiku- 200000 4000 0 A SP 0.3
openai/gpt-4o 100000 4000 0 A SP 1.25
openai/gpt-5 1050000 4000 0 A SP 0.46
openai/o3-mini 200000 4400 0 A HSP 0.55
google/gemini-2.5-pro 1050000 4000 0 A SP 0.125
google/gemini-2.5-flash 1050000 2500 0 A SP 0.075
openrouter/anthropic/claude- 200000 8000 0 A SP 1.5
openrouter/openai/gpt-4o 100000 4000 0 A SP 1.25
openrouter/openai/gpt-5 1050000 4000 0 A SP 0.46
openrouter/openai/o3-mini 200000 4400 0 A HSP 0.55
openrouter/google/gemini-2.5- 1050000 4000 0 A SP 0.125
openrouter/meta-llama/llama-3.1-70b 32000 2000 22000 B - 0
openrouter/meta-llama/llama-3.3-70b 32000 2000 22000 B - 0
openrouter/google/gemma-2- 16000 1500 12000 B - 0
openrouter/mistralai/ 32000 2000 22000 B S 0
openrouter/deepseek/deepseek-v4-pro 1000000 2000 22000 B FHP 0.0145
openrouter/deepseek/deepseek-v3.2 128000 2000 22000 B P 0.0145
openrouter/deepseek/deepseek-chat 128000 2000 22000 B P 0.0145
openrouter/x-ai/grok- 256000 2000 22000 B S 0
openrouter/openrouter/free 16000 1500 10000 C F 0
openrouter/nvidia/nemotron- 16000 1500 10000 C F 0
openrouter/z-ai/glm- 16000 1500 10000 C F 0
openrouter/qwen/qwen-2.5- 16000 1500 10000 C F 0
openrouter/moonshotai/kimi-k2 256000 1500 10000 C FH 0
openrouter/moonshotai/kimi- 256000 1500 10000 C FH 0
openrouter/tencent/ 250000 1500 10000 C F 0
""".strip().splitlines()


def flags_of(budget: BudgetSpec) -> str:
    flags = {
        "F": budget.allows_llm_filter,
        "H": budget.is_hybrid_reasoning,
        "S": budget.wants_strict_json,
        "P": budget.supports_prefix_cache,
    }
    return "".join(flag for flag, is_set in flags.items() if is_set) or "-"


def figures_of(budget: BudgetSpec) -> list[str]:
    return [
        str(budget.input_tokens),
        str(budget.output_tokens),
        str(budget.max_catalog_bytes),
        budget.tier.value,
        flags_of(budget),
    ]


@pytest.mark.parametrize("line", SEED_ROWS, ids=lambda line: line.split()[0])
def test_seed_row(line: str) -> None:
    key, *figures, cached = line.split()
    row = next(row for row in ROWS if row.key == key)

    assert figures_of(row) == figures
    assert row.cached_input_cost_usd_per_mtok == float(cached)
    assert row.prompt_variant is None
    assert row.filter_model == ""
    assert TABLE.resolve(key).matched_key == key
    assert TABLE.resolve(key).rule == "exact"


def test_the_seed_rows_come_first_and_in_order() -> None:
    assert [row.key for row in ROWS[1:30]] == [line.split()[0] for line in SEED_ROWS]


def test_totals_of_the_seed_rows() -> None:
    rows = ROWS[1:30]
    tiers = [row.tier.value for row in rows]

    assert [tiers.count(tier) for tier in "ABC"] == [14, 8, 7]
    assert sum(row.supports_prefix_cache for row in rows) == 17
    assert sum(row.wants_strict_json for row in rows) == 16
    assert sum(row.is_hybrid_reasoning for row in rows) == 6
    assert sum(row.allows_llm_filter for row in rows) == 8


def test_the_fallback_is_conservative() -> None:
    fallback = ROWS[0]

    assert fallback.key == ""
    assert figures_of(fallback) == ["16000", "1500", "10000", "C", "F"]
    assert fallback.cached_input_cost_usd_per_mtok == 0


@pytest.mark.parametrize(
    ("model", "tier"),
    [
        ("anthropic/claude-haiku-4-5", "A"),
        ("anthropic/claude-opus-4-7-20260301", "A"),
        ("openrouter/anthropic/claude-sonnet-4-6", "A"),
        ("openrouter/anthropic/claude-3-5-sonnet", "A"),
        ("openrouter/nvidia/nemotron-3-super-120b-a12b:free", "C"),
        ("openrouter/z-ai/glm-4.5-air:free", "C"),
        ("openrouter/meta-llama/llama-3.1-70b-instruct", "B"),
        ("openai/o3-mini", "A"),
        ("google/gemini-2.5-pro", "A"),
        ("google/gemini-2.5-flash", "A"),
        ("anthropic/claude-3.7-sonnet", "A"),
        ("openrouter/openai/o3-mini", "A"),
        ("openrouter/google/gemini-2.5-pro", "A"),
        ("openrouter/deepseek/deepseek-v4-pro", "B"),
        ("openrouter/deepseek/deepseek-v3.2", "B"),
        ("openrouter/x-ai/grok-4", "B"),
        ("openrouter/moonshotai/kimi-k2.6", "C"),
        ("openrouter/moonshotai/kimi-k2.6:free", "C"),
        ("openrouter/tencent/hy3-preview", "C"),
        ("brand-new-vendor/model-x:v3", "C"),
        ("openrouter/openrouter/free", "C"),
    ],
)
def test_tier_vectors(model: str, tier: str) -> None:
    assert TABLE.lookup(model).tier == tier


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-3.7-sonnet", True),
        ("openai/o3-mini", True),
        ("openrouter/openai/o3-mini", True),
        ("openrouter/deepseek/deepseek-v4-pro", True),
        ("openrouter/moonshotai/kimi-k2.6", True),
        ("openrouter/moonshotai/kimi-latest", True),
        ("openai/gpt-4o", False),
        ("anthropic/claude-sonnet-4.6", False),
        ("google/gemini-2.5-flash", False),
        ("openrouter/openrouter/free", False),
        ("never/seen", False),
    ],
)
def test_hybrid_vectors(model: str, expected: bool) -> None:
    assert TABLE.lookup(model).is_hybrid_reasoning is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-haiku-4-5", True),
        ("openai/gpt-4o", True),
        ("openai/o3-mini", True),
        ("google/gemini-2.5-pro", True),
        ("openrouter/mistralai/mistral-large", True),
        ("openrouter/x-ai/grok-4", True),
        ("openrouter/openrouter/free", False),
        ("openrouter/qwen/qwen-2.5-coder", False),
        ("openrouter/moonshotai/kimi-k2.6", False),
        ("openrouter/meta-llama/llama-3.1-70b-instruct", False),
        ("never/seen", False),
    ],
)
def test_strict_json_vectors(model: str, expected: bool) -> None:
    assert TABLE.lookup(model).wants_strict_json is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-opus-4-7", True),
        ("openai/gpt-5", True),
        ("google/gemini-2.5-flash", True),
        ("openrouter/deepseek/deepseek-v4-pro", True),
        ("openrouter/deepseek/deepseek-v3.2", True),
        ("openrouter/openrouter/free", False),
        ("openrouter/qwen/qwen-2.5-coder", False),
        ("openrouter/meta-llama/llama-3.3-70b-instruct", False),
        ("never/seen", False),
    ],
)
def test_prefix_cache_vectors(model: str, expected: bool) -> None:
    budget = TABLE.lookup(model)

    assert budget.supports_prefix_cache is expected
    assert (budget.cached_input_cost_usd_per_mtok > 0) is expected


@pytest.mark.parametrize(
    ("model", "key", "rule", "tier", "flags", "variant"),
    [
        # helmdeck ADR 050 has no row for these.
        ("openrouter/auto", "openrouter/auto", "exact", "B", "-", "full_steps"),
        (
            "openrouter/minimax/minimax-m2.7",
            "openrouter/minimax/",
            "prefix",
            "C",
            "FH",
            "single_pick",
        ),
        ("gemini/gemini-2.5-pro", "google/gemini-2.5-pro", "alias", "A", "SP", "full_steps"),
        ("gemini/gemini-2.5-flash", "google/gemini-2.5-flash", "alias", "A", "SP", "full_steps"),
        ("openai/gpt-4-turbo", "openai/gpt-4-turbo", "exact", "A", "S", "full_steps"),
        ("openai/gpt-4.1", "openai/gpt-4.1", "exact", "A", "SP", "full_steps"),
        ("openai/o4-mini", "openai/o4-mini", "exact", "A", "HSP", "full_steps"),
        ("anthropic/claude-3-5-sonnet", "anthropic/claude-3-5-", "prefix", "A", "SP", "full_steps"),
        (
            "deepseek/deepseek-chat",
            "openrouter/deepseek/deepseek-chat",
            "alias",
            "B",
            "P",
            "full_steps",
        ),
        (
            "deepseek/deepseek-reasoner",
            "openrouter/deepseek/deepseek-r1",
            "alias",
            "C",
            "FH",
            "single_pick",
        ),
        (
            "openrouter/deepseek/deepseek-r1",
            "openrouter/deepseek/deepseek-r1",
            "exact",
            "C",
            "FH",
            "single_pick",
        ),
        ("mistral/mistral-large-latest", "mistral/", "prefix", "B", "S", "full_steps"),
        ("groq/mixtral-8x7b-32768", "groq/", "prefix", "C", "F", "single_pick"),
        ("groq/llama-3.3-70b-versatile", "groq/llama-3.3-70b", "prefix", "B", "-", "full_steps"),
        ("fireworks/llama-v3p1-8b-instruct", "fireworks/", "prefix", "C", "F", "single_pick"),
        ("ollama/qwen2.5-coder", "ollama/", "prefix", "C", "F", "single_pick"),
        ("OpenAI/GPT-4o", "openai/gpt-4o", "exact", "A", "SP", "full_steps"),
        # Over OpenRouter a model that thinks is still hybrid.
        (
            "openrouter/anthropic/claude-3.7-sonnet",
            "openrouter/anthropic/claude-3.7-sonnet",
            "exact",
            "A",
            "HSP",
            "full_steps",
        ),
        # These stand.
        ("openai/gpt-4o-mini", "openai/gpt-4o", "prefix", "A", "SP", "full_steps"),
        ("openai/gpt-5-mini", "openai/gpt-5", "prefix", "A", "SP", "full_steps"),
        (
            "google/gemini-2.5-flash-lite",
            "google/gemini-2.5-flash",
            "prefix",
            "A",
            "SP",
            "full_steps",
        ),
        (
            "anthropic/claude-3.7-sonnet:thinking",
            "anthropic/claude-3.7-sonnet",
            "prefix",
            "A",
            "HSP",
            "full_steps",
        ),
        # Free routes are not trusted with the row of the paid model.
        (
            "openrouter/deepseek/deepseek-chat-v3.1:free",
            "openrouter/deepseek/deepseek-chat",
            "free_suffix",
            "C",
            "FP",
            "single_pick",
        ),
        (
            "openrouter/meta-llama/llama-3.3-70b-instruct:free",
            "openrouter/meta-llama/llama-3.3-70b",
            "free_suffix",
            "C",
            "F",
            "single_pick",
        ),
        (
            "openrouter/mistralai/mistral-7b-instruct:free",
            "openrouter/mistralai/",
            "free_suffix",
            "C",
            "F",
            "single_pick",
        ),
        (
            "openrouter/google/gemma-2-9b-it:free",
            "openrouter/google/gemma-2-",
            "free_suffix",
            "C",
            "F",
            "single_pick",
        ),
        (
            "openrouter/openai/gpt-oss-120b:free",
            "openrouter/openai/gpt-oss-",
            "free_suffix",
            "C",
            "FH",
            "single_pick",
        ),
        (
            "openrouter/qwen/qwen3-coder:free",
            "openrouter/qwen/qwen3-coder",
            "free_suffix",
            "C",
            "F",
            "single_pick",
        ),
    ],
)
def test_lookups_that_surprised(
    model: str, key: str, rule: str, tier: str, flags: str, variant: str
) -> None:
    resolution = TABLE.resolve(model)
    budget = resolution.budget

    assert (resolution.matched_key, resolution.rule) == (key, rule)
    assert budget.tier == tier
    assert budget.prompt_variant == variant
    assert budget.allows_llm_filter is ("F" in flags)
    assert budget.is_hybrid_reasoning is ("H" in flags)
    assert budget.wants_strict_json is ("S" in flags)
    assert budget.supports_prefix_cache is ("P" in flags)


@pytest.mark.parametrize(
    ("spellings", "key"),
    [
        ("google/gemini-2.5-pro gemini/gemini-2.5-pro gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("models/gemini-2.5-pro vertex_ai/gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("google_genai/gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("anthropic/claude-sonnet-4-5 claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic/claude-sonnet-"),
        (
            "bedrock/anthropic.claude-sonnet-4 vertex_ai/claude-sonnet-4@20250514",
            "anthropic/claude-sonnet-",
        ),
        ("anthropic/claude-3-5-haiku-latest claude-3-5-sonnet-20241022", "anthropic/claude-3-5-"),
        ("claude-3.5-sonnet anthropic/claude-3.5-sonnet", "anthropic/claude-3-5-"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic/claude-3-5-"),
        (
            "claude-3-7-sonnet-20250219 anthropic/claude-3-7-sonnet-latest",
            "anthropic/claude-3-7-sonnet",
        ),
        ("gpt-4o openai/gpt-4o azure/gpt-4o chatgpt-4o-latest gpt-4o-mini", "openai/gpt-4o"),
        ("gpt-4.1 azure/gpt-4.1-mini openrouter/openai/gpt-4.1", "openai/gpt-4.1"),
        ("o3 openai/o3-pro openrouter/openai/o3", "openai/o3"),
        ("o3-mini azure/o3-mini", "openai/o3-mini"),
        ("gpt-5 gpt-5-nano azure/gpt-5", "openai/gpt-5"),
        (
            "gpt-oss-20b openai/gpt-oss-120b openrouter/openai/gpt-oss-120b",
            "openrouter/openai/gpt-oss-",
        ),
        (
            "deepseek/deepseek-chat deepseek-chat openrouter/deepseek/deepseek-chat",
            "openrouter/deepseek/deepseek-chat",
        ),
        ("deepseek-reasoner deepseek/deepseek-reasoner", "openrouter/deepseek/deepseek-r1"),
        (
            "meta-llama/Llama-3.3-70B-Instruct llama-3.3-70b-versatile",
            "openrouter/meta-llama/llama-3.3-70b",
        ),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "openrouter/meta-llama/llama-3.1-70b"),
        ("x-ai/grok-4 xai/grok-4 grok-4", "openrouter/x-ai/grok-"),
        ("moonshotai/kimi-k2 moonshot/kimi-k2 kimi-k2", "openrouter/moonshotai/kimi-k2"),
        ("mistral-large-latest codestral-latest mistral/mistral-small", "mistral/"),
        ("mistralai/mistral-large", "openrouter/mistralai/"),
        ("openrouter/free openrouter/openrouter/free", "openrouter/openrouter/free"),
        ("openrouter/auto openrouter/openrouter/auto", "openrouter/auto"),
        ("z-ai/glm-4.5-air glm-4.6", "openrouter/z-ai/glm-"),
        ("MiniMax-M2.7 minimax/minimax-m2", "openrouter/minimax/"),
        ("ollama/llama3 ollama_chat/llama3", "ollama/"),
        (
            "fireworks_ai/accounts/fireworks/models/x accounts/fireworks/models/x",
            "fireworks/",
        ),
    ],
)
def test_every_spelling_of_a_model_has_one_answer(spellings: str, key: str) -> None:
    for spelling in spellings.split():
        assert TABLE.resolve(spelling).matched_key == key, spelling


@pytest.mark.parametrize(
    "model", ["o2-something", "gpt-oss", "azure/my-deployment", "llama3.2", ""]
)
def test_what_nobody_knows_has_the_fallback(model: str) -> None:
    assert TABLE.resolve(model).rule == "fallback"


def test_every_row_says_why() -> None:
    assert [row.key for row in ROWS if len(row.evidence) < 20] == []


def test_tier_a_rows_never_compact() -> None:
    assert [row.key for row in ROWS if row.tier is Tier.A and row.max_catalog_bytes] == []


def test_rows_are_sound_and_keys_unique() -> None:
    keys = [row.key.lower() for row in ROWS]

    assert len(set(keys)) == len(keys)
    assert {row.key: budget_problems(row) for row in ROWS if budget_problems(row)} == {}


def test_every_alias_can_be_reached_and_leads_to_a_row() -> None:
    prefixes = [alias.prefix.lower() for alias in ALIASES]
    keys = [row.key.lower() for row in ROWS if row.key]

    assert len(set(prefixes)) == len(prefixes)
    for alias in ALIASES:
        assert not [key for key in keys if alias.prefix.lower().startswith(key)], alias
        leads = [key for key in keys if key.startswith(alias.target.lower())]
        leads += [key for key in keys if alias.target.lower().startswith(key)]
        assert leads, alias


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("][", "not TOML"),
        ("", "fallback"),
        ("[fallback]\n[other]\n", "other"),
        ("[fallback]\ninput_tokens = 1\n", "the fallback: output_tokens is missing; tier"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ShippedError, match=message):
        load_shipped(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("colour = 1", "colour is no member of a budget"),
        ('tier = "D"', "tier cannot be 'D'"),
        ("input_tokens = true", "input_tokens cannot be True"),
        ('prompt_variant = "both"', "prompt_variant cannot be 'both'"),
        ("project = 3", "project is no member"),
    ],
)
def test_a_slip_in_a_row_is_refused_by_name(line: str, message: str) -> None:
    row = """
    key = "a/b"
    output_tokens = 1
    max_catalog_bytes = 0
    allows_llm_filter = false
    is_hybrid_reasoning = false
    wants_strict_json = false
    supports_prefix_cache = false
    """
    given = line.partition(" ")[0]
    row += "" if given == "tier" else 'tier = "A"\n'
    row += "" if given == "input_tokens" else "input_tokens = 1\n"
    fallback = FILE.read_text(encoding="utf-8").partition("[[budget]]")[0]

    with pytest.raises(ShippedError, match=f"a/b: .*{message}"):
        load_shipped(f"{fallback}\n[[budget]]\n{row}\n{line}\n")


def test_a_row_may_set_its_variant() -> None:
    text = FILE.read_text(encoding="utf-8").partition("[[budget]]")[0]

    rows, _ = load_shipped(text + '\nprompt_variant = "full_steps"\n')

    assert BudgetTable(rows).lookup("x").prompt_variant == "full_steps"


def test_an_alias_needs_both_ends() -> None:
    text = FILE.read_text(encoding="utf-8").partition("[[budget]]")[0]

    with pytest.raises(ShippedError, match="alias"):
        load_shipped(f'{text}\n[[alias]]\nprefix = "a"\n')
