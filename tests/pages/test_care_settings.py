"""Settings of care: the switch, the three texts, their preview, and the way back to ours."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from helmdash.core.access.permissions import SHELL
from helmdash.core.care.guidance import DEFAULT_TEXTS
from helmdash.core.care.remediation import Strength
from helmdash.operations.demo.loading import load_demo
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.care_settings import CareSettings, care_settings
from tests.factories import NOW
from tests.pages.hygiene import faults

PAGE, SAVE, PREVIEW = "/settings/care/", "/settings/care/save/", "/settings/care/preview/"
OWN = {"soft_text": "Soon full: {percent} %.", "hard_text": "Write!", "critical_text": "Now!"}


def test_the_page_shows_the_shipped_texts_with_sample_figures(
    owner: Client, project: ProjectInfo
) -> None:
    html = unescape(owner.get(PAGE).content.decode())

    assert faults(html) == []
    assert DEFAULT_TEXTS[Strength.SOFT].strip() in html
    assert "112,400 of 200,000 prompt tokens" in html
    assert "{grace_left}" in html


def test_own_texts_and_the_switch_are_saved(owner: Client, project: ProjectInfo) -> None:
    response = owner.post(SAVE, {"remediation": "on", **OWN})

    assert response["Location"] == f"{PAGE}?project=default"
    assert care_settings(project_id=project.id) == CareSettings(remediation=True, **OWN)
    assert "Soon full: 56 %." in owner.get(PAGE).content.decode()


def test_the_shipped_text_is_stored_as_none_of_ones_own(
    owner: Client, project: ProjectInfo
) -> None:
    # Browsers send line ends of their own.
    shipped = DEFAULT_TEXTS[Strength.HARD].replace("\n", "\r\n") + "\r\n"

    owner.post(SAVE, {**OWN, "hard_text": shipped, "soft_text": " "})

    stored = care_settings(project_id=project.id)
    assert (stored.soft_text, stored.hard_text, stored.critical_text) == ("", "", "Now!")
    assert stored.remediation is False


# a text; what is said of it
FAULTY = [
    ("You have {left} left", "left"),
    ("x" * 4_001, "4,000"),
    ("{", "brace"),
    ("a\x00b", "NUL"),
]


@pytest.mark.parametrize(("text", "said"), FAULTY)
def test_a_text_that_cannot_be_used_is_named_and_kept_in_the_form(
    owner: Client, project: ProjectInfo, text: str, said: str
) -> None:
    response = owner.post(SAVE, {**OWN, "hard_text": text})

    html = response.content.decode()
    assert response.status_code == 422
    assert 'Not saved: see <a href="#hard_text">Hard text</a>.' in html
    assert html.count("Hard text: ") == 1
    assert said in html
    assert 'id="hard_text" name="hard_text" rows="12" aria-invalid="true"' in html
    assert faults(html) == []
    assert care_settings(project_id=project.id).hard_text == ""


def test_a_preview_saves_nothing(owner: Client, project: ProjectInfo) -> None:
    whole = owner.post(PREVIEW, OWN).content.decode()
    live = owner.post(PREVIEW, OWN, headers={"HX-Request": "true"}).content.decode()

    assert "Not saved yet" in whole
    assert "Soon full: 56 %." in whole
    assert "<textarea" not in live
    # preview, whose text it is, and the way back to the shipped one
    assert live.count("hx-swap-oob") == 9
    assert live.count("your own text") == live.count("Use the shipped text again") == 3
    assert "Soon full: 56 %." in live
    assert care_settings(project_id=project.id).soft_text == ""


def test_going_back_to_the_shipped_text_keeps_what_else_was_typed(
    owner: Client, project: ProjectInfo
) -> None:
    html = unescape(owner.post(PREVIEW, {**OWN, "reset": "soft"}).content.decode())

    assert OWN["soft_text"] not in html
    assert DEFAULT_TEXTS[Strength.SOFT].strip() in html
    assert "Write!" in html


def test_demo_data_is_not_edited(owner: Client, project: ProjectInfo) -> None:
    load_demo(actor=SHELL, now=NOW)
    owner.get("/?project=demo")

    assert 'action="/settings/care/save/"' not in owner.get(PAGE).content.decode()
    response = owner.post(SAVE, OWN)

    assert response.status_code == 422
    assert "demo data" in response.content.decode()


def test_a_viewer_reads_and_gets_no_form(viewer: Client, project: ProjectInfo) -> None:
    html = viewer.get(PAGE).content.decode()

    assert "Only owners of the project may change this" in html
    assert "<textarea" not in html
