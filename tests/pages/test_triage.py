"""What people say about trouble, from the pages that show it."""

from __future__ import annotations

from django.test import Client
from django.utils import timezone

from helmdash.core.agents.claude_hooks import ClientEvent, ClientEventKind
from helmdash.operations.recording.client_events import note_event
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import FailureMark, TriageWord
from tests.factories import make_capture, record
from tests.pages.hygiene import faults

GROUP = {"cause": "rate_limited", "model": "openai/gpt-4o"}


def part(client: Client, name: str) -> str:
    """One section of the overview."""
    html = client.get("/").content.decode()
    assert faults(html) == []
    return html.split(f'id="{name}"', 1)[1].split("</section>", 1)[0]


def failing(client: Client) -> str:
    return part(client, "failing")


def test_what_fails_is_resolved_on_the_overview_and_comes_back(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    failed = {"http_status": 429, "finish_reason": None, "usage": None}
    record(make_capture(**failed), project=project)
    before, read = failing(owner), failing(viewer)

    said = {**GROUP, "state": "resolved", "range": "7d"}
    answer = owner.post("/failures/mark/", said, follow=True)
    resolved = failing(owner)
    record(make_capture(**failed), project=project)
    again = failing(owner)

    assert "The provider&#x27;s rate limit was reached" in before
    assert "/calls/?query=cause%3Arate_limited%20spelt%3Aopenai%2Fgpt-4o&amp;range=24h" in before
    assert "Resolve" in before
    assert "Resolve" not in read
    assert "Resolved: it comes back" in answer.content.decode()
    assert "range=7d" in answer.redirect_chain[0][0]
    assert "Nothing fails" in resolved
    assert "resolved by owner" in resolved
    assert "came back" in again


def test_a_mark_that_makes_no_sense_is_told_and_not_kept(
    owner: Client, project: ProjectInfo
) -> None:
    for wrong in ({"cause": "nope"}, {"model": ""}, {"model": "m" * 256}, {"state": "gone"}):
        answer = owner.post("/failures/mark/", {**GROUP, "state": "muted", **wrong}, follow=True)

        assert f"{next(iter(wrong))}: " in answer.content.decode()
    assert not FailureMark.objects.exists()


def test_a_conversation_is_seen_to_from_the_overview_and_its_page(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    failed = {"http_status": 500, "finish_reason": None, "usage": None}
    record(make_capture(**failed), project=project)
    address, page = "/care/triage/talk/", "/conversations/talk/"

    noted = owner.post(address, {"word": "note", "text": "<b>Bob looks"}, follow=True)
    needs = part(owner, "needs-attention")
    read = part(viewer, "needs-attention")
    done = owner.post(address, {"word": "done", "back": "overview"})

    assert (faults(noted.content.decode()), "Noted." in noted.content.decode()) == ([], True)
    assert "Note: &lt;b&gt;Bob looks" in needs
    assert ("Snooze" in needs, "Snooze" in read) == (True, False)
    assert done["Location"].startswith("/?")
    assert "/conversations/talk/" not in part(owner, "needs-attention")
    seen = viewer.get(page).content.decode().split('id="triage"', 1)[1].split("</section>", 1)[0]
    assert ("owner" in seen, "<strong>done</strong>" in seen, "<button" in seen) == (
        *(True, True),
        False,
    )


def test_a_word_that_makes_no_sense_is_told_and_not_kept(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(), project=project)

    cases = [
        ({"word": "gone"}, "word: "),
        ({"word": "note"}, "text: write what"),
        ({"word": "note", "text": "x" * 501}, "text: "),
    ]
    for wrong, told in cases:
        answer = owner.post("/care/triage/talk/", wrong, follow=True).content.decode()
        assert told in answer
        # One sentence for one thing wrong.
        assert answer.count("text: ") <= 1
    assert owner.post("/care/triage/nobody/", {"word": "done"}).status_code == 404
    assert not TriageWord.objects.exists()


def test_a_conversation_that_fails_is_not_shown_as_healthy_first(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(conversation="talk"), project=project)
    record(make_capture(conversation="talk", http_status=429, finish_reason=None), project=project)

    for page in ("/", "/conversations/"):
        rows = owner.get(page).content.decode().split("<td><span class=", 1)[1]
        assert rows.index("</svg>Failing</span>") < rows.index("prompt healthy")


def test_a_refusal_of_the_client_is_trouble_wherever_its_conversation_is_shown(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(), project=project)
    event = ClientEvent(
        kind=ClientEventKind.REFUSAL, conversation="talk", key="", detail="Prompt is too long"
    )
    note_event(project=project, event=event, now=timezone.now())

    pages = [
        owner.get(path).content.decode()
        for path in ("/", "/conversations/", "/conversations/talk/")
    ]
    for html in pages:
        assert "</svg>Failing</span>" in html
        assert "its client refused to go on, without a request: Prompt is too long" in html
    happened = pages[-1].split("What happened", 1)[1].split("</table>", 1)[0]
    assert "after 1</td>" in happened
    assert "its client refused to go on" in happened


def test_the_failed_calls_of_the_range_are_counted_first_of_all(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(id="well"), project=project)
    quiet = part(owner, "levels")
    record(make_capture(id="bad", http_status=429, finish_reason=None), project=project)

    html = owner.get("/?range=25m").content.decode()

    told = html.split('id="levels"', 1)[1].split("</section>", 1)[0]
    counter = told.split("/calls/?cause=any&amp;range=25m", 1)[1]
    assert "<strong>1</strong>" in counter
    assert "50 % of 2 calls, 25m" in counter
    # Red is for what somebody has to see to.
    assert "is-critical" in counter
    assert "is-critical" not in quiet.split("/calls/?cause=any", 1)[1]


def test_what_is_no_range_is_not_carried_on(owner: Client) -> None:
    said = {"cause": "x", "model": "m", "state": "muted", "range": "x" * 20_000}

    answer = owner.post("/failures/mark/", said)

    assert (answer.status_code, answer["Location"]) == (302, "/?project=default#failing")
