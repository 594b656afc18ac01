"""A request for embeddings, in OpenAI's shape, and what becomes of its reply."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.gateway.forwarding.streams.pipes import Pipe
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import JSON, Header
from helmdash.providers.openai import embeddings
from helmdash.providers.protocols import HttpRequest, UpstreamFormat
from helmdash.providers.registry import UPSTREAMS
from helmdash.providers.wire import EmbeddingReply, Reply, WireError


class EmbeddingTranslator:
    """A reply with vectors, for a client of OpenAI's API."""

    def __init__(
        self, upstream: UpstreamFormat, *, model: str, encoding: str, is_native: bool
    ) -> None:
        """model: as the client wrote it. encoding: `float` or `base64`, as it asked for."""
        self.is_native = is_native
        self._upstream = upstream
        self._model = model
        self._encoding = encoding
        self._vectors: EmbeddingReply

    def is_streamed(self, content_type: str) -> bool:
        return False

    def read_error(self, status: int, data: bytes) -> WireError:
        return self._upstream.read_error(status, data)

    def read_whole(self, data: bytes) -> Reply:
        """There is no text in such a reply."""
        found = self._vectors = self._upstream.read_embeddings(data)
        return Reply(model=found.model, usage=found.usage, error=found.error)

    def pass_whole(self, data: bytes) -> bytes:
        return data

    def write_whole(self, reply: Reply) -> tuple[bytes, Header]:
        written = embeddings.write_embeddings(
            self._vectors, model=self._model, encoding=self._encoding
        )
        return written, JSON

    def stream_type(self, content_type: str) -> str:
        raise NotImplementedError

    def pipe(self) -> Pipe:
        raise NotImplementedError


def embedding_request(
    exchange: Exchange, endpoint: Endpoint, outgoing: OutgoingRequest
) -> tuple[HttpRequest, EmbeddingTranslator]:
    """The request, and what becomes of its reply.

    Raises BadRequest for what no other provider could be told, and CannotTranslate.
    """
    upstream, model = UPSTREAMS[endpoint.kind], exchange.served_model
    is_native = endpoint.kind is ProviderKind.OPENAI
    encoding = "float"
    if is_native:
        request = embeddings.pass_embedding_request(
            outgoing.body, outgoing.parsed, endpoint=endpoint, model=model
        )
    else:
        asked = embeddings.read_embedding_request(outgoing.parsed)
        encoding = asked.encoding
        request = upstream.embeddings_request(asked, endpoint=endpoint, model=model)
    translator = EmbeddingTranslator(
        upstream, model=exchange.model, encoding=encoding, is_native=is_native
    )
    return request, translator
