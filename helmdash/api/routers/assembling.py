"""Assembling a prompt within a budget: the context manager's door."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body
from helmdash.api.problems import Code
from helmdash.api.responding import answer
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import assembling as shapes
from helmdash.operations.fitting.assembly import AssembledPrompt, assemble_prompt

router = Router()


@route(
    router,
    "POST",
    "/assemble",
    tag="fitting",
    scope="fit",
    body=shapes.AssembleIn,
    body_examples={
        "two chunks": examples.ASSEMBLE,
        "only what can be cited": examples.ASSEMBLE_STRICT,
    },
    may=(Code.OVER_BUDGET,),
    answers={
        200: Answer(
            meaning="The prompt, and what it is made of.",
            shape=AssembledPrompt,
            example=examples.ASSEMBLED,
        )
    },
)
def assemble(request: HttpRequest) -> HttpResponse:
    """Put a prompt together that fits a model.

    The best chunks are taken as long as the whole text stays within the budget, in tokens
    estimated from its bytes. The same input gives the same prompt, in whatever order the chunks
    come. When the other parts alone are too big, nothing is cut: the response is `over_budget`.
    """
    given = read_body(request, shapes.ASSEMBLE)
    found = assemble_prompt(
        project=access_of(request).project,
        model=given.get("model"),
        system=given["system"],
        instructions=given.get("instructions") or "",
        user_query=given["user_query"],
        chunks=shapes.to_chunks(given),
        mode=shapes.to_mode(given),
        budget_tokens=given.get("budget_tokens"),
        conversation=given.get("conversation"),
    )
    return answer(found)
