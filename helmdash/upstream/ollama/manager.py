"""The context manager: a prompt within the model's real window, or no request at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from helmdash.answers import to_json
from helmdash.core.assembly.assembly import Assembled, assemble, prompt_budget
from helmdash.core.assembly.chunks import Chunk, SelectionMode
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.windows import wanted_window
from helmdash.core.text.tokens import Estimator
from helmdash.providers.wire import Json, Object
from helmdash.upstream.ollama.checking import PromptCheck, check_prompt
from helmdash.upstream.ollama.client import NativeClient, Receipt
from helmdash.upstream.ollama.values import OllamaReply

# What is kept of the window for the reply ("Context Manager").
DEFAULT_RESERVE_TOKENS = 2000


class UnknownWindow(Exception):
    """The server tells no window for the model and nobody else named one: give `window_tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """What was sent, what came back, and whether the counts agree."""

    assembled: Assembled
    answer: OllamaReply
    check: PromptCheck


class ContextManager:
    """Assembles prompts for one model and sends them with the window they were made for."""

    def __init__(
        self,
        client: NativeClient,
        *,
        model: str,
        window_tokens: int,
        reserve_tokens: int = DEFAULT_RESERVE_TOKENS,
        estimator: Estimator | None = None,
    ) -> None:
        """`window_tokens` is taken as it is; `open` finds out what the model has.

        Raises core.assembly.assembly.NoRoom when the reserve leaves no room for a prompt.
        """
        self.client = client
        self.model = model
        self.window_tokens = window_tokens
        self.budget_tokens = prompt_budget(
            limit_tokens=window_tokens, reserve_tokens=reserve_tokens
        )
        self.estimator = estimator or Estimator()

    @classmethod
    async def open(
        cls,
        client: NativeClient,
        model: str,
        *,
        budget: EffectiveBudget | None = None,
        window_tokens: int | None = None,
        reserve_tokens: int | None = None,
        estimator: Estimator | None = None,
    ) -> ContextManager:
        """A manager for the model's real window: asked of the server, and only ever lowered.

        `window_tokens`, or where that is None what `budget` wants, is clamped down to it. The
        reserve and the estimator are the budget's, unless they are given; without either 2,000
        tokens and the default estimator. Raises UnknownWindow, OllamaError, and
        core.assembly.assembly.NoRoom.
        """
        own = (await client.show(model)).window_tokens
        wanted = window_tokens if window_tokens is not None else _wanted(budget)
        known = [tokens for tokens in (own, wanted) if tokens is not None]
        if not known:
            raise UnknownWindow(
                f"The server does not say how large the window of {model} is. Give window_tokens."
            )
        if reserve_tokens is None:
            reserve_tokens = budget.reserve_tokens if budget else DEFAULT_RESERVE_TOKENS
        return cls(
            client,
            model=model,
            window_tokens=min(known),
            reserve_tokens=reserve_tokens,
            estimator=estimator or (budget.estimator if budget else None),
        )

    def assemble(
        self,
        *,
        user_query: str,
        system: str = "",
        instructions: str = "",
        chunks: Sequence[Chunk] = (),
        mode: SelectionMode = SelectionMode.DEFAULT,
    ) -> Assembled:
        """Put a prompt together within the budget. Raises OverBudget: nothing has been sent."""
        return assemble(
            system=system,
            instructions=instructions,
            user_query=user_query,
            chunks=chunks,
            mode=mode,
            budget_tokens=self.budget_tokens,
            estimator=self.estimator,
        )

    async def generate(
        self,
        assembled: Assembled,
        *,
        options: Object | None = None,
        conversation: str = "",
        timeout_s: float | None = None,
        **more: Json,
    ) -> SentPrompt:
        """Send an assembled prompt to `/api/generate`. timeout_s (seconds) None: the client's own.
        Raises OllamaError, OllamaTimeout."""
        answer = await self.client.generate(
            self.model,
            assembled.user,
            system=assembled.system or None,
            num_ctx=self.window_tokens,
            options=_own(options),
            timeout_s=timeout_s,
            receipt=_receipt(assembled, conversation),
            **more,
        )
        return self._sent(assembled, answer)

    async def chat(
        self,
        assembled: Assembled,
        *,
        options: Object | None = None,
        conversation: str = "",
        timeout_s: float | None = None,
        **more: Json,
    ) -> SentPrompt:
        """Send it as a system and a user message to `/api/chat`. None and what is raised are as for
        `generate`."""
        answer = await self.client.chat(
            self.model,
            _messages(assembled),
            num_ctx=self.window_tokens,
            options=_own(options),
            timeout_s=timeout_s,
            receipt=_receipt(assembled, conversation),
            **more,
        )
        return self._sent(assembled, answer)

    async def stream_chat(
        self,
        assembled: Assembled,
        *,
        options: Object | None = None,
        conversation: str = "",
        timeout_s: float | None = None,
        **more: Json,
    ) -> AsyncIterator[str | SentPrompt]:
        """The reply of `chat` piece by piece, and at the end a SentPrompt. None and what is raised
        are as for `generate`."""
        pieces = self.client.stream_chat(
            self.model,
            _messages(assembled),
            num_ctx=self.window_tokens,
            options=_own(options),
            timeout_s=timeout_s,
            receipt=_receipt(assembled, conversation),
            **more,
        )
        async for piece in pieces:
            if piece.text:
                yield piece.text
            if piece.answer is not None:
                yield self._sent(assembled, piece.answer)

    def _sent(self, assembled: Assembled, answer: OllamaReply) -> SentPrompt:
        check = check_prompt(
            estimated_tokens=assembled.manifest.total_tokens,
            reported_tokens=answer.prompt_eval_count,
            num_ctx=self.window_tokens,
        )
        return SentPrompt(assembled=assembled, answer=answer, check=check)


def _wanted(budget: EffectiveBudget | None) -> int | None:
    return None if budget is None else wanted_window(budget)


def _own(options: Object | None) -> Object | None:
    if options is not None and "num_ctx" in options:
        raise ValueError("num_ctx: the window is the one that the budget was made for")
    return options


def _messages(assembled: Assembled) -> list[Object]:
    system: Object = {"role": "system", "content": assembled.system}
    user: Object = {"role": "user", "content": assembled.user}
    return [system, user] if assembled.system else [user]


def _receipt(assembled: Assembled, conversation: str) -> Receipt:
    manifest = assembled.manifest
    return Receipt(
        token_estimate=manifest.total_tokens,
        prompt_hash=manifest.prompt_hash,
        chunks=tuple(to_json(entry) for entry in manifest.chunks),
        conversation=conversation,
    )
