"""The simulated vendors, asked by the official SDKs without HelmDash between: are they true?"""

from __future__ import annotations

import json

import pytest

from tests.gateway.clients import QUESTION, TOOL, open_client
from tests.gateway.world import COMPLETION, PROMPT, PROVIDERS
from tests.support.upstreams import Fleet
from tests.support.upstreams.fleet import PREFIXES
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

ZURICH = (TOOL, {"city": "Zürich", "days": 3})
REYKJAVIK = (TOOL, {"city": "Reykjavík", "days": 3})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_sdk_finds_its_own_vendor(fleet: Fleet, provider: str) -> None:
    prefix = PREFIXES[provider]
    with open_client(provider, fleet[provider].root_url, "a-key") as client:
        for ask in (client.chat, client.stream):
            said = ask(f"{prefix}-plain")
            assert (said.text, said.prompt, said.completion) == (WHOLE, PROMPT, COMPLETION)
        for ask in (client.use_tools, client.stream_tools):
            assert ask(f"{prefix}-two-tools").tools == (ZURICH, REYKJAVIK)
        assert client.tell_results(f"{prefix}-plain").text == WHOLE
        assert client.look(f"{prefix}-plain").text == "I see 1 image(s)."
        assert set(json.loads(client.want_json(f"{prefix}-plain").text)) == {"city", "days"}
        assert client.stream(f"{prefix}-crumbs").text == WHOLE


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_simulations_keep_what_they_got_and_see_a_hang_up(
    fleet: Fleet, provider: str, mark: str
) -> None:
    model = f"{PREFIXES[provider]}-endless.{mark}"
    with open_client(provider, fleet[provider].root_url, "a-key") as client:
        client.leave_early(model)
    (seen,) = fleet[provider].seen(mark)
    assert seen.hung_up.wait(1)
    assert QUESTION in seen.text
    assert seen.sent
