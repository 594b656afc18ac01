"""Simulated OpenAI, Anthropic, Gemini and Ollama: true on the wire, and faulty on demand.

Each is a real server on 127.0.0.1 in a thread of the test process; what a model does is said by
its name (`behaviours`), and everything a server was sent and has sent is kept (`http.Seen`).
"""

from __future__ import annotations

from tests.support.upstreams.fleet import Fleet as Fleet
from tests.support.upstreams.fleet import run_fleet as run_fleet
from tests.support.upstreams.http import Seen as Seen
