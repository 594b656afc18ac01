"""The server as a process: what it prints, how it starts, limits and stops."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import pytest

from tests.support.environment import ROOT
from tests.support.processes import free_port, run_python
from tests.support.server import Served

CALL = {
    "conversation": "hello",
    "model": "openai/gpt-4o",
    "usage": {"prompt_tokens": 96_000, "completion_tokens": 350},
}


# On the other database each run's template is such a first start, and what servers of tests begin
# with is a second one.
@pytest.mark.one_database
def test_a_second_start_keeps_the_data_and_prints_no_secret_again(
    serve: Callable[..., Served],
) -> None:
    server = serve(first=True, HELMDASH_BOOTSTRAP_API_KEY="", HELMDASH_ADMIN_PASSWORD="")
    key = re.search(r"API key +(\S+) ", server.log)
    assert key is not None
    headers = {"Authorization": f"Bearer {key[1]}"}
    base = f"{server.base_url}/api/v1"
    answer = httpx.post(f"{base}/calls", json={**CALL, "id": "kept"}, headers=headers)
    assert answer.status_code == 201
    assert "already" not in server.log
    beside = replace(server, port=free_port(), forked=True)
    beside.start()
    assert f"A server runs on {server.data_dir} already, at {server.base_url}:" in server.log
    beside.kill()

    assert server.stop() == 0
    before = len(server.log)
    server.forked = True
    server.start()

    assert key[1] not in server.log[before:]
    assert httpx.get(f"{base}/calls/kept", headers=headers).json()["conversation"] == "hello"


@pytest.mark.one_database
def test_a_taken_port_and_a_bad_setting_stop_the_start_with_one_line(served: Served) -> None:
    for settings, sentence in (
        ({}, f"cannot listen on 127.0.0.1:{served.port}"),
        ({"PORT": "http"}, "PORT='http'"),
        ({"HELMDASH_WORKERS": "many"}, "HELMDASH_WORKERS='many'"),
    ):
        environment = {**served.environment(), **settings}
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "up"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        assert done.returncode != 0
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr


def test_a_body_over_the_limit_is_refused_whether_announced_or_not(
    serve: Callable[..., Served],
) -> None:
    server = serve(HELMDASH_MAX_BODY_BYTES="4096")
    url = f"{server.base_url}/api/v1/calls"
    headers = {**server.headers, "Content-Type": "application/json"}

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1024

    announced = httpx.post(url, content=b" " * 5000, headers=headers)
    chunked = httpx.post(url, content=endless(), headers=headers)

    for response in (announced, chunked):
        assert response.status_code == 413
        assert response.headers["content-type"] == "application/problem+json"
        assert "HELMDASH_MAX_BODY_BYTES" in response.json()["detail"]


def test_the_liveness_checks_and_static_files_need_no_key(served: Served) -> None:
    assert httpx.get(f"{served.base_url}/healthz").json() == {"status": "ok"}
    ready = httpx.get(f"{served.base_url}/readyz").json()
    assert (ready["status"], ready["database"]) == ("ok", "ok")
    assert ready["recorder"]["state"] == "storing"

    page = httpx.get(f"{served.base_url}/login/")
    style = re.search(r'href="(/static/[^"]+\.css)"', page.text)
    assert style is not None
    sheet = httpx.get(served.base_url + style[1])
    assert sheet.status_code == 200
    assert "immutable" in sheet.headers["cache-control"]


@pytest.mark.one_database
def test_a_sign_in_link_is_of_the_server_that_runs_and_not_of_the_shell(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    other = run_python(
        "manage.py",
        "member",
        "link",
        "admin",
        env={**server.environment(), "PORT": "29999"},
        timeout=120,
    )
    link = re.search(r"http\S+/login/link/\S+", other.stdout)
    assert link is not None
    with httpx.Client() as browser:
        page = browser.get(link[0], follow_redirects=True)
    assert (page.status_code, page.url.port) == (200, server.port)

    public = {"HELMDASH_PUBLIC_URL": "https://helm.example"}
    for is_running, settings, url in (
        (True, public, "https://helm.example/"),
        (False, {"PORT": "29999"}, "http://127.0.0.1:29999/"),
    ):
        if not is_running:
            server.kill()  # it can tell nobody that it ends
        env = {**server.environment(), **settings}
        told = run_python("manage.py", "member", "link", "admin", env=env, timeout=120)
        assert f"Sign in     {url}login/link/" in told.stdout, told.stderr


def test_a_stranger_host_name_is_refused(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as raw:
        raw.sendall(b"GET /login/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        status = raw.recv(64)

    assert b" 400 " in status
