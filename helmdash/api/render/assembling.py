"""Assembled prompts as they leave."""

from __future__ import annotations

from typing import cast

from helmdash.api.schemas import assembling
from helmdash.core.assembly.manifest import AssemblyManifest
from helmdash.operations.fitting.assembly import AssembledPrompt


def assembled(value: AssembledPrompt) -> assembling.Assembled:
    """The answer to POST /assemble."""
    estimator = value.budget.estimator
    return {
        "prompt": value.assembled.prompt,
        "user": value.assembled.user,
        "manifest": manifest(value.assembled.manifest),
        "budget": cast(
            assembling.PromptBudget,
            {
                "tokens": value.budget.tokens,
                "source": value.budget.source,
                "key": value.budget.key,
                "limit_tokens": value.budget.limit_tokens,
                "reserve_tokens": value.budget.reserve_tokens,
                "chars_per_token": estimator.chars_per_token,
                "safety_multiplier": estimator.safety_multiplier,
            },
        ),
    }


def manifest(value: AssemblyManifest) -> assembling.Manifest:
    """The Manifest object; a test holds core's members to the shape."""
    return cast(assembling.Manifest, value.to_json())
