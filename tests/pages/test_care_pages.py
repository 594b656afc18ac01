"""Care on the pages: the countdown, guidance, reminders, a clear by hand, and what left."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.operations import care
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.care import ReminderView, reminders
from helmdash.records.models import Call, CallPayload, Round
from tests.factories import make_capture, record
from tests.pages.care import CAUTION, CRITICAL, note, play
from tests.pages.hygiene import faults

PAGE = "/conversations/cared/"
CHANGE = "/care/change/cared/"
HTMX = {"HX-Request": "true"}


def text_of(html: str) -> str:
    """A page, or a part of one, as people read it."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def part(html: str, title_id: str) -> str:
    """The section with this heading, as people read it."""
    begun = html.split(f'aria-labelledby="{title_id}"', 1)[1]
    return text_of("<" + begun.split("</section>", 1)[0])


def kept(project: ProjectInfo) -> list[str]:
    """The reminders, in their order."""
    found: tuple[ReminderView, ...] | None = reminders(project_id=project.id, conversation="cared")
    return [each.content for each in found or ()]


# --- countdown and guidance -------------------------------------------------------------------

# prompts of the calls so far; what is said in plain sight
COUNTDOWNS = [
    # the first of three soft ones is given; two are left
    ([CAUTION], "2 more soft guidances, then a hard one"),
    ([CAUTION] * 2, "1 more soft guidance, then a hard one"),
    # the hard one is given with the fourth generation; the cadence is ten
    ([CAUTION] * 4, "Next hard guidance in"),
    # the first of five prompts is given
    ([CRITICAL], "4 generations until HelmDash clears"),
    ([CRITICAL] * 4, "1 generation until HelmDash clears"),
    # the next one is under way, and the clear comes after it
    ([CRITICAL] * 5, "HelmDash clears after generation 7"),
]


@pytest.mark.parametrize(("prompts", "said"), COUNTDOWNS)
def test_what_comes_next_is_in_plain_sight(
    owner: Client, project: ProjectInfo, prompts: list[int], said: str
) -> None:
    play(project, 20_000, *prompts)

    html = owner.get(PAGE).content.decode()

    assert faults(html) == []
    assert said in text_of(html.split('aria-label="Countdown"', 1)[1].split("</section>", 1)[0])


def test_a_healthy_conversation_counts_nothing_down(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000)

    html = owner.get(PAGE).content.decode()

    assert 'aria-label="Countdown"' not in html
    assert "No guidance yet" in part(html, "guidance")


def test_guidance_is_told_with_its_strength_and_whether_it_was_followed(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000, *[CAUTION] * 4)

    asked = part(owner.get(PAGE).content.decode(), "guidance")
    record(make_capture(id="cared-6", conversation="cared"), project=project)
    before = part(owner.get(PAGE).content.decode(), "guidance")
    note(project, "invoice is moved")
    after = part(owner.get(PAGE).content.decode(), "guidance")

    assert "Hard write or update a reminder" in asked
    assert asked.count("Soft ") == 3
    assert "waiting for generation 6" in asked
    assert "Not followed" not in asked
    assert "Not followed" in before
    assert "Not followed" not in after
    assert "Followed" in after


def test_recorded_prompts_say_that_they_are_in_the_history(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000, CRITICAL)

    said = part(owner.get(PAGE).content.decode(), "guidance")

    assert "4 generations left after it" in said
    assert "recorded as a user message" in said


def test_a_clear_is_in_the_curve_the_guidance_and_what_left(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000, *[CRITICAL] * 6, 14_000)

    html = owner.get(PAGE).content.decode()

    assert "clear, round 2" in html
    assert "opened round 2" in part(html, "guidance")
    left = part(html, "left")
    assert "opens round 2" in left
    assert "118,000 14,000 104,000 went" in left
    assert "re-entry package" in left
    assert part(html, "rounds").count("clear") == 1


def test_a_round_without_a_call_is_shown_as_such(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000, CAUTION)
    care.clear(actor=SHELL, project=project, conversation="cared", now=timezone.now())

    html = owner.get(PAGE).content.decode()

    assert "Round 2 is open and has no call yet" in html
    assert "round 2 has no call yet" in text_of(html)
    # Clearing again would free nothing.
    assert "Clear now" not in html


def test_budget_and_full_window_are_told_beside_the_curve(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 90_000)

    html = owner.get(PAGE).content.decode()

    said = text_of(html.split('aria-label="Windows of the model"', 1)[1].split("</dl>", 1)[0])
    assert "Limit in force, tokens 128,000" in said
    assert "Full window as advertised, tokens 128,000" in said
    assert "budget 100,000" in html


def test_a_poll_hears_of_a_clear_that_came_without_a_call(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000, CAUTION)
    etag = owner.get(PAGE, headers=HTMX)["ETag"]

    care.clear(actor=SHELL, project=project, conversation="cared", now=timezone.now())

    again = owner.get(PAGE, headers={**HTMX, "If-None-Match": etag})
    assert again.status_code == 200
    assert again["ETag"] != etag


def test_the_live_fragment_leaves_the_reminders_alone(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000)

    html = owner.get(PAGE, headers=HTMX).content.decode()

    assert 'id="live"' in html
    assert 'id="live-rest" class="stack" hx-swap-oob="true"' in html
    assert 'id="reminders"' not in html
    assert "hx-swap-oob" not in owner.get(PAGE).content.decode()


# --- reminders --------------------------------------------------------------------------------


def test_reminders_are_added_changed_moved_and_deleted_without_scripts(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000)

    def send(**data: str) -> None:
        response = owner.post(CHANGE, data)
        assert (response.status_code, response["Location"]) == (
            302,
            f"{PAGE}?project=default#reminders",
        )

    send(do="add", kind="note", content="first")
    send(do="add", kind="re_entry", content="second")
    assert kept(project) == ["first", "second"]
    one, two = (each.id for each in reminders(project_id=project.id, conversation="cared") or ())

    send(do="save", id=one, kind="note", content="first, better")
    send(do="up", id=two, position="2")
    assert kept(project) == ["second", "first, better"]
    send(do="down", id=two, position="1")
    assert kept(project) == ["first, better", "second"]
    send(do="delete", id=two)
    assert kept(project) == ["first, better"]


def test_scripts_get_the_part_alone(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000)

    response = owner.post(CHANGE, {"do": "add", "content": "<b>bold</b>"}, headers=HTMX)

    html = response.content.decode()
    assert response.status_code == 200
    assert html.lstrip().startswith('<section class="card" id="reminders"')
    assert "&lt;b&gt;bold" in html
    assert faults(html) == []


# what is sent; what is said of it
WRONG = [
    ({"do": "add", "content": "   "}, "What must survive: "),
    ({"do": "add", "content": "x" * 20_001}, "What must survive: "),
    ({"do": "add", "content": "x", "kind": "poem"}, "Kind: "),
    ({"do": "save", "id": "gone", "content": "x"}, "was deleted meanwhile"),
    ({"do": "delete", "id": "gone"}, "not there any more"),
    ({"do": "up", "id": "gone", "position": "1e9"}, "not there any more"),
    ({"do": "burn"}, "do: send add"),
    ({}, "do: send add"),
]


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["whole", "part"])
@pytest.mark.parametrize(("data", "said"), WRONG)
def test_what_cannot_be_kept_is_said_beside_the_form(
    owner: Client, project: ProjectInfo, data: dict[str, str], said: str, headers: dict[str, str]
) -> None:
    play(project, 20_000)

    response = owner.post(CHANGE, data, headers=headers)

    html = response.content.decode()
    assert response.status_code == 422
    assert said in text_of(html)
    assert faults(html) == []


def test_a_text_that_was_refused_is_not_lost(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000)
    one = note(project, "short")
    long = "word " * 4_001

    html = owner.post(CHANGE, {"do": "save", "id": one, "content": long}).content.decode()

    assert long.strip() in html
    assert kept(project) == ["short"]


def test_the_package_is_shown_with_its_size_and_bound(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000)
    note(project, "## Next steps\nmove payment", kind="re_entry")

    said = part(owner.get(PAGE).content.decode(), "reminders-title")

    assert re.search(r"as it would be now: [\d,]+ of at most [\d,]+ bytes", said)
    assert "Round 2 would begin with it" in said
    assert "Open questions and risks" in said


def test_the_part_polls_by_itself_and_changes_with_what_others_write(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000)
    path = "/care/reminders/cared/"

    def poll(etag: str) -> Any:
        return owner.get(path, headers={**HTMX, "If-None-Match": etag})

    etag = owner.get(path, headers=HTMX)["ETag"]
    # The tag also holds the minute, which may have turned since.
    etag = poll(etag)["ETag"]
    assert poll(etag).status_code == 304

    note(project, "by the agent")

    assert "by the agent" in poll(etag).content.decode()
    assert owner.get(path)["Location"] == f"{PAGE}#reminders"


# --- a clear by hand --------------------------------------------------------------------------


def test_a_clear_by_hand_opens_the_next_round_once(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000, CAUTION)

    first = owner.post("/care/clear/cared/", {"reminder_content": "go on with payment"})
    again = owner.post("/care/clear/cared/", follow=True)

    assert first["Location"] == f"{PAGE}?project=default"
    assert kept(project) == ["go on with payment"]
    html = again.content.decode()
    assert "Round 2 is open already" in html
    assert "somebody did it on this page" in part(html, "guidance")
    assert "round 3" not in html


def test_a_brake_is_told_and_let_go_on_the_page(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000, CRITICAL, CRITICAL)
    opened = Round.objects.get(conversation__name="cared")
    opened.care = {**(opened.care or {}), "cd": 0, "b": 3}
    opened.save()

    html = owner.get(PAGE).content.decode()
    assert "HelmDash has stopped clearing" in html
    assert "At generation 3 two rounds in a row" in html
    assert faults(html) == []
    assert "/care/go-on/cared/" in html
    after = owner.post("/care/go-on/cared/", follow=True).content.decode()
    again = owner.post("/care/go-on/cared/", follow=True).content.decode()

    assert "Care goes on" in after
    assert "has stopped clearing" not in after
    assert "Care had not stopped" in again
    assert owner.post("/care/go-on/nobody/").status_code == 404


# an address that only forms are sent to; the page that is shown to who reloads it
PATHS = [
    (CHANGE, PAGE),
    ("/care/clear/cared/", PAGE),
    ("/care/go-on/cared/", PAGE),
    ("/settings/care/save/", "/settings/care/"),
    ("/settings/care/preview/", "/settings/care/"),
]


@pytest.mark.parametrize(("path", "page"), PATHS)
def test_only_staff_changes_and_only_by_post(
    owner: Client, viewer: Client, project: ProjectInfo, path: str, page: str
) -> None:
    play(project, 20_000)

    assert viewer.post(path, {"do": "add", "content": "x"}).status_code == 403
    assert owner.get(path)["Location"] == page
    assert owner.put(path).status_code == 405
    assert kept(project) == []


@pytest.mark.parametrize("path", ["/care/change/nope/", "/care/clear/nope/", "/care/clear/a%00b/"])
def test_what_is_not_there_cannot_be_changed(
    owner: Client, project: ProjectInfo, path: str
) -> None:
    assert owner.post(path, {"do": "add", "content": "x"}).status_code == 404
    assert owner.get("/care/reminders/nope/", headers=HTMX).status_code == 404


def test_a_viewer_reads_reminders_and_gets_no_forms(viewer: Client, project: ProjectInfo) -> None:
    play(project, 20_000)
    note(project, "look, no forms")

    html = viewer.get(PAGE).content.decode()

    assert "look, no forms" in html
    assert "/care/change/" not in html
    assert "/care/clear/" not in html


# --- the overview -----------------------------------------------------------------------------


def test_needs_attention_says_what_comes_next(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000, CRITICAL, CRITICAL, name="worst")
    play(project, 20_000, *[CAUTION] * 5, name="heedless")
    play(project, 20_000, *[CAUTION] * 4, name="asked")
    play(project, 20_000, name="fine")

    said = part(owner.get("/").content.decode(), "needs-attention")

    assert "3 generations until HelmDash clears" in said
    assert said.count("Hard guidance not followed") == 1
    assert said.index("worst") < said.index("heedless")
    assert "fine" not in said


def test_needs_attention_says_which_kind_of_empty_it_is(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(conversation=None), project=project)
    nothing = part(owner.get("/").content.decode(), "needs-attention")
    play(project, 20_000)
    calm = part(owner.get("/").content.decode(), "needs-attention")

    assert "Nothing to watch over" in nothing
    assert "Nothing needs attention" in calm


# --- suspected cuts ---------------------------------------------------------------------------


def test_a_suspected_cut_is_unknown_everywhere_and_shows_its_evidence(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(id="cut", conversation="cared"), project=project)
    row = Call.objects.get(name="cut")
    Call.objects.filter(pk=row.pk).update(level="unknown", level_reason="suspected_cut")
    evidence = {
        "version": "cuts-2",
        "rule": "half_window",
        "detail": "Half of a window of 4,096 and 2. Raise num_ctx, or lower the budget.",
        "expected_tokens": 5_300,
        "reported_tokens": 2_050,
    }
    CallPayload.objects.update_or_create(call=row, defaults={"cut": evidence})

    page = text_of(owner.get("/calls/cut/").content.decode())
    found = owner.get("/calls/?level_reason=suspected_cut").content.decode()
    others = owner.get("/calls/?level_reason=usage_unavailable").content.decode()
    models = owner.get("/models/").content.decode()

    assert "half_window" in page
    assert "Expected by the bytes sent 5,300" in page
    assert page.count("num_ctx") == 1
    assert "what was cut upstream is told above" in page
    assert "Unknown probably cut upstream" in page
    assert "probably cut upstream" in found
    assert "/calls/cut/" in found
    assert "/calls/cut/" not in others
    assert "1 suspected cut" in models
    assert "probably cut upstream" in owner.get(PAGE).content.decode()


def test_an_owner_erases_a_conversation_once_its_id_is_typed(
    owner: Client, editor: Client, filled: str
) -> None:
    assert "Erase for good" in owner.get("/conversations/talk/").content.decode()
    assert "Erase for good" not in editor.get("/conversations/talk/").content.decode()

    wrong = owner.post("/care/erase/talk/", {"confirm": "tal"}, follow=True)
    assert "Type the conversation" in wrong.content.decode()
    assert editor.post("/care/erase/talk/", {"confirm": "talk"}).status_code == 403
    assert owner.get("/conversations/talk/").status_code == 200

    done = owner.post("/care/erase/talk/", {"confirm": "talk"}, follow=True)
    assert "Erased talk: 5 calls" in done.content.decode()
    assert owner.get("/conversations/talk/").status_code == 404
