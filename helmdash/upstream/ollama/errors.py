"""What can go wrong with a request to an Ollama server."""

from __future__ import annotations


class OllamaError(Exception):
    """The server refused a request, or none of its answer came.

    `status` is that of HTTP, None where no answer came; `endpoint` the path that was asked, such as
    `/api/chat`; `message` one line without keys and addresses of people.
    """

    def __init__(self, message: str, *, endpoint: str, status: int | None = None) -> None:
        where = f"{endpoint} answered {status}" if status is not None else endpoint
        super().__init__(f"{where}: {message}")
        self.message = message
        self.endpoint = endpoint
        self.status = status

    @property
    def code(self) -> str:
        """One word for logs: `http_<status>` or `no_answer`."""
        return f"http_{self.status}" if self.status is not None else "no_answer"


class OllamaTimeout(OllamaError):
    """The answer, or the next piece of a stream, did not come in time."""

    @property
    def code(self) -> str:
        """The word of this error in the request log."""
        return "timeout"
