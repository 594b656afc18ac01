"""Forms of care when something changed behind them: the project, the reminder, what is known."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.operations import care
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.care import ReminderView, reminders
from helmdash.queries.conversations.care_settings import care_settings
from helmdash.queries.conversations.conversations import standing
from helmdash.records.models import ApiKey, Call, Conversation, Project
from tests.factories import make_capture, make_project, record
from tests.pages.care import CAUTION, CRITICAL, note, play
from tests.pages.hygiene import faults
from tests.pages.test_care_pages import part, text_of

PAGE, CHANGE = "/conversations/cared/", "/care/change/cared/"
HTMX = {"HX-Request": "true"}
TEXTS = {"soft_text": "Soft.", "hard_text": "Hard.", "critical_text": "Now."}


@pytest.fixture
def two(owner: Client, project: ProjectInfo) -> ProjectInfo:
    """Another project with a conversation of the same name; the one that another tab chose."""
    other = make_project(slug="two", name="Two")
    play(project, 20_000, CAUTION)
    play(other, 20_000, CAUTION)
    owner.get("/?project=two")
    return other


def kept(project: ProjectInfo) -> tuple[ReminderView, ...]:
    return reminders(project_id=project.id, conversation="cared") or ()


def rounds(project: ProjectInfo) -> int:
    found = standing(project_id=project.id, conversation_id="cared")
    return found.round_number if found else 0


# --- the project a form was made for ----------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["whole", "part"])
def test_a_reminder_goes_into_the_project_its_page_shows(
    owner: Client, project: ProjectInfo, two: ProjectInfo, headers: dict[str, str]
) -> None:
    sent = {"do": "add", "content": "here", "project": "default"}
    owner.post(CHANGE, sent, headers=headers)

    assert [each.content for each in kept(project)] == ["here"]
    assert kept(two) == ()
    # What is shown next is of that project too.
    assert "Project: Default" in owner.get(PAGE).content.decode()


def test_its_address_says_it_too(owner: Client, project: ProjectInfo, two: ProjectInfo) -> None:
    added = {"do": "add", "content": "here"}
    owner.post(f"{CHANGE}?project=default", added, headers=HTMX)

    assert (len(kept(project)), len(kept(two))) == (1, 0)
    assert owner.post(f"{CHANGE}?project=gone", added).status_code == 409


def test_a_clear_the_settings_the_policy_and_a_key_do_so_too(
    owner: Client, project: ProjectInfo, two: ProjectInfo
) -> None:
    def send(path: str, **data: str) -> None:
        owner.get("/?project=two")
        owner.post(path, {**data, "project": "default"})

    send("/care/clear/cared/")
    send("/settings/care/save/", remediation="on", **TEXTS)
    send("/settings/gateway/policy/", budget_mode="enforce")
    send("/settings/keys/", name="mine", scopes="read")

    assert (rounds(project), rounds(two)) == (2, 1)
    assert care_settings(project_id=project.id).soft_text == "Soft."
    assert care_settings(project_id=two.id).soft_text == ""
    modes = dict(Project.objects.values_list("slug", "budget_mode"))
    assert (modes["default"], modes["two"]) == ("enforce", "observe")
    assert ApiKey.objects.get().project_id == project.id


PAGES = [PAGE, "/settings/care/", "/settings/gateway/", "/settings/", "/settings/upstreams/"]
# Forms that are about no project.
_OF_NONE = ("/theme/", "/logout/", "/settings/demo/")


@pytest.mark.parametrize("path", [*PAGES, "/try/fit/", "/try/plan/", "/try/route/", "/"])
def test_every_form_says_which_project_its_page_shows(
    owner: Client, project: ProjectInfo, path: str
) -> None:
    if path == PAGE:
        play(project, 20_000)
        note(project, "one")

    html = owner.get(path).content.decode()

    forms = re.findall(
        r'<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>', html, re.S
    )
    own = [(to, body) for to, body in forms if not to.startswith(_OF_NONE)]
    assert [to for to, body in own if 'name="project" value="default"' not in body] == []
    assert own or path == "/settings/upstreams/"


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["whole", "part"])
def test_a_form_of_a_project_that_is_gone_saves_nothing_and_keeps_the_words(
    owner: Client, project: ProjectInfo, headers: dict[str, str]
) -> None:
    play(project, 20_000)
    words = "what <b>must</b> survive"

    answer = owner.post(CHANGE, {"do": "add", "content": words, "project": "gone"}, headers=headers)

    html = answer.content.decode()
    assert answer.status_code == 409
    assert f"What must survive {words}" in " ".join(
        unescape(re.sub(r"<(?!b>|/b>)[^>]+>", " ", html)).split()
    )
    # Nobody typed that.
    assert "csrf" not in (html if headers else html.split("<main", 1)[1].split("</main>", 1)[0])
    assert faults(html) == []
    assert kept(project) == ()
    assert answer.headers.get("HX-Retarget") == ("#main" if headers else None)
    assert ("<html" in html) is not bool(headers)


# --- a reminder that somebody else changed ----------------------------------------------------


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["whole", "part"])
def test_words_for_a_reminder_that_was_deleted_become_a_new_one_to_add(
    owner: Client, project: ProjectInfo, headers: dict[str, str]
) -> None:
    play(project, 20_000)
    gone = note(project, "old")
    care.delete_reminder(
        actor=SHELL, project=project, conversation="cared", reminder_id=gone, now=timezone.now()
    )

    typed = {"do": "save", "id": gone, "content": "my words", "kind": "re_entry"}
    answer = owner.post(CHANGE, typed, headers=headers)

    html = answer.content.decode()
    assert answer.status_code == 422
    assert '<details open><summary class="small">Add a reminder' in html
    assert re.search(r'<textarea id="content-new"[^>]*>my words</textarea>', html)
    assert "deleted meanwhile" in text_of(html)
    assert faults(html) == []


def test_a_text_that_somebody_else_wrote_meanwhile_is_not_overwritten_unseen(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000)
    one = note(project, "first")
    shown = re.search(r'name="updated_at" value="([^"]+)"', owner.get(PAGE).content.decode())
    assert shown is not None
    care.update_reminder(
        actor=SHELL,
        project=project,
        conversation="cared",
        reminder_id=one,
        content="by the agent",
        now=timezone.now(),
    )
    typed = {"do": "save", "id": one, "kind": "note", "content": "by me"}

    refused = owner.post(CHANGE, {**typed, "updated_at": shown[1]})
    html = refused.content.decode()
    stored = kept(project)[0].content
    newer = re.search(r'name="updated_at" value="([^"]+)"', html)
    assert newer is not None
    owner.post(CHANGE, {**typed, "updated_at": newer[1]})

    assert (refused.status_code, stored) == (422, "by the agent")
    assert "by the agent" in text_of(html)
    assert ">by me</textarea>" in html
    assert kept(project)[0].content == "by me"


def test_the_focus_goes_to_what_was_written(owner: Client, project: ProjectInfo) -> None:
    play(project, 20_000)

    html = owner.post(CHANGE, {"do": "add", "content": "x"}, headers=HTMX).content.decode()
    one = kept(project)[0].id
    gone = owner.post(CHANGE, {"do": "delete", "id": one}, headers=HTMX).content.decode()

    assert f'<li id="r-{one}" tabindex="-1" autofocus>' in html
    assert '<summary class="small" autofocus>Add a reminder' in gone


# --- what is said of guidance -----------------------------------------------------------------


def test_a_guidance_is_judged_only_when_its_generation_was_recorded(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000, *[CRITICAL] * 2)

    html = owner.get(PAGE).content.decode()

    banner = text_of(html.split('aria-label="Countdown"', 1)[1].split("</section>", 1)[0])
    assert "The latest guidance waits for generation 4." in banner
    assert "The one before it was not followed." in banner
    rows = part(html, "guidance")
    assert (rows.count("waiting for generation 4"), rows.count("Not followed")) == (1, 1)


def asked(project: ProjectInfo) -> None:
    play(project, *[20_000] * 7)


def not_asked(project: ProjectInfo) -> None:
    record(
        make_capture(conversation="cared", usage={"prompt_tokens": CAUTION}),
        project=project,
    )


def calm(project: ProjectInfo) -> None:
    record(make_capture(conversation="cared", usage={"prompt_tokens": 20_000}), project=project)


# what happened; what is said of it
UNTOLD = [
    (asked, "Asked up to generation 8; nothing had to be said."),
    (not_asked, "Care has not run: neither the gateway nor an agent asked"),
    (calm, "No program has asked for guidance, and the newest call is above no line."),
]


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize(("happened", "said"), UNTOLD)
def test_no_guidance_is_told_for_the_reason_there_is(
    owner: Client, project: ProjectInfo, happened: object, said: str, is_on: bool
) -> None:
    assert callable(happened)
    happened(project)
    Project.objects.update(remediation=is_on)

    told = part(owner.get(PAGE).content.decode(), "guidance")

    assert said in told
    assert ("Care is off in the gateway" in told) is not is_on


# --- who needs somebody -----------------------------------------------------------------------


def test_an_unknown_conversation_that_counts_down_and_a_cut_one_need_somebody(
    owner: Client, project: ProjectInfo
) -> None:
    play(project, 20_000, CRITICAL, None, name="dim")
    play(project, 20_000, name="shortened")
    Conversation.objects.filter(name="shortened").update(
        level="unknown",
        severity=1,
        level_reason="suspected_cut",
        cut_generation=1,
        attention=1,
    )

    said = part(owner.get("/").content.decode(), "needs-attention")

    assert "until HelmDash clears" in said
    assert said.index("dim") < said.index("shortened")
    assert "raise num_ctx or lower the budget" in said


def test_more_that_need_somebody_than_are_shown_are_counted(
    owner: Client, project: ProjectInfo
) -> None:
    for number in range(12):
        usage = {"prompt_tokens": CAUTION if number % 2 else CRITICAL}
        record(
            make_capture(id=f"c{number}", conversation=f"c{number}", usage=usage), project=project
        )

    said = part(owner.get("/").content.decode(), "needs-attention")

    assert "10 of 12, the worst first" in said


# --- figures of models ------------------------------------------------------------------------


def test_counts_that_are_not_trusted_stay_out_of_the_figures_of_a_model(
    owner: Client, project: ProjectInfo
) -> None:
    for number in range(3):
        record(
            make_capture(
                id=f"m{number}",
                conversation=None,
                usage={
                    "prompt_tokens": 1_000,
                    "completion_tokens": 9,
                    "prompt_tokens_details": {"cached_tokens": 500},
                },
            ),
            project=project,
        )
    Call.objects.update(estimate_tokens=1_000)
    Call.objects.filter(name="m2").update(
        estimate_tokens=9_000, level="unknown", level_reason="suspected_cut"
    )

    html = text_of(owner.get("/models/").content.decode())

    assert "1 suspected cut" in html
    assert "1.00" in html
    assert "n 2" in html
