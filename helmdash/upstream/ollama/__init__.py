"""The context manager for local models on Ollama: its clients, windows, and checks.

Source: "Context Manager" (docs/sources.md). The prompt is put together by core.assembly.assembly
within the window that the server is then told to use (`num_ctx`); what would not fit is refused
before any HTTP request.
"""

from __future__ import annotations

from helmdash.upstream.ollama.checking import PromptCheck, Verdict, check_prompt
from helmdash.upstream.ollama.client import NativeClient
from helmdash.upstream.ollama.discovery import Found, discover
from helmdash.upstream.ollama.errors import OllamaError, OllamaTimeout
from helmdash.upstream.ollama.manager import ContextManager, SentPrompt, UnknownWindow
from helmdash.upstream.ollama.openai_client import OpenAIClient
from helmdash.upstream.ollama.values import OllamaReply, Piece, Ping

__all__ = [
    "ContextManager",
    "Found",
    "NativeClient",
    "OllamaError",
    "OllamaReply",
    "OllamaTimeout",
    "OpenAIClient",
    "Piece",
    "Ping",
    "PromptCheck",
    "SentPrompt",
    "UnknownWindow",
    "Verdict",
    "check_prompt",
    "discover",
]
