"""The small forms of the pages: text into values, or a sentence that says the fix."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils import timezone

from helmdash.core.access.expiry import BadExpiry, parse_expiry
from helmdash.core.access.permissions import MemberRole
from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.failures import FailureCause
from helmdash.core.catalog.catalog import CatalogError, parse_catalog
from helmdash.core.text.jsontext import MAX_DEPTH, is_too_deep
from helmdash.operations.triage import Word
from helmdash.pages.zones import find_zone
from helmdash.queries.access.access import SCOPES
from helmdash.queries.failures import GroupState
from helmdash.queries.line_edits import Lines

# Far beyond what any model writes at once; a larger number is a slip of the keyboard.
MOST_OUTPUT_TOKENS = 1_000_000
# A thousand times what the largest windows hold.
_MOST_TOKENS = 1_000_000_000


class WholeNumber(forms.IntegerField):
    """A number that is answered in plain words where it cannot be, in all forms."""

    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid": "write a whole number",
        "min_value": "give %(limit_value)s or more",
        "max_value": "give %(limit_value)s or less",
    }


def one_of(
    values: Iterable[str],
    *,
    blank: str = "Any",
    said: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> forms.ChoiceField:
    """A choice that may be left open; a wrong one is answered with the right ones. said: what a
    value is called where its own name does not tell it."""
    known = list(values)
    return forms.ChoiceField(
        required=False,
        choices=[("", blank), *((value, said.get(value, value)) for value in known)],
        error_messages={"invalid_choice": f"%(value)s is not one of: {', '.join(known)}"},
        **options,
    )


def _tokens(label: str, **attrs: bool) -> WholeNumber:
    shown = {"placeholder": "default", "inputmode": "numeric", **attrs}
    return WholeNumber(
        required=False,
        min_value=1,
        max_value=_MOST_TOKENS,
        label=label,
        widget=forms.NumberInput(attrs=shown),
    )


class LinesForm(forms.Form):
    """The lines of a budget, in tokens; left out: as the default has it."""

    # Where the panel opens on a page, who opened it by a key is in it.
    caution = _tokens("Caution above, tokens", autofocus=True)
    critical = _tokens("Critical above, tokens")
    window = _tokens("Context length, tokens")

    @staticmethod
    def values_of(lines: Lines) -> dict[str, int | None]:
        """What the form holds before anybody typed."""
        return {"caution": lines.caution, "critical": lines.critical, "window": lines.window}

    def lines(self) -> Lines:
        """The lines; only after is_valid()."""
        return Lines(**self.cleaned_data)

    def tell(self, problems: Iterable[tuple[str, str]]) -> None:
        """Say what is wrong with the row that they would make, once each."""
        for name, sentence in problems:
            field = _LINES.get(name)
            if sentence not in self.errors.get(field or NON_FIELD_ERRORS, ()):
                self.add_error(field, sentence)

    @property
    def told(self) -> list[tuple[str, str]]:
        """Label and sentence for each thing wrong; the label "" where it is of none."""
        return [
            (str(self.fields[name].label) if name in self.fields else "", str(message))
            for name, found in self.errors.items()
            for message in found
        ]


_LINES = {
    "optimal_max_tokens": "caution",
    "critical_max_tokens": "critical",
    "context_length": "window",
}


class SaidForm(forms.Form):
    """A small form whose faults are told in one line."""

    @property
    def problems(self) -> list[str]:
        """A sentence with its field for each thing wrong."""
        return [f"{name}: {error}" for name, errors in self.errors.items() for error in errors]


class FailureMarkForm(SaidForm):
    """What somebody says of a model's calls that failed for a cause."""

    cause = forms.TypedChoiceField(
        choices=[(each.value, each.value) for each in FailureCause], coerce=FailureCause
    )
    model = forms.CharField(max_length=255)
    state = forms.TypedChoiceField(
        choices=[(each.value, each.value) for each in GroupState], coerce=GroupState
    )


class SuggestionForm(SaidForm):
    """What somebody makes of a suggested edit; reason: why it is not followed. Of a trial: share in
    percent, and what ends it."""

    do = forms.ChoiceField(
        choices=[(each, each) for each in ("accept", "dismiss", "trial", "revert")]
    )
    reason = forms.CharField(required=False, max_length=500)
    share = WholeNumber(
        required=False,
        min_value=1,
        max_value=90,
        label="share in percent",
    )
    conversations = WholeNumber(required=False, min_value=40, max_value=100_000)
    days = WholeNumber(required=False, min_value=1, max_value=90)

    def clean(self) -> None:
        if self.cleaned_data.get("do") == "dismiss" and self.cleaned_data.get("reason") == "":
            self.add_error("reason", "write why, for who looks at it later")


class TriageForm(SaidForm):
    """What somebody says of a conversation; text: the words of a note."""

    word = forms.TypedChoiceField(choices=[(each.value, each.value) for each in Word], coerce=Word)
    text = forms.CharField(required=False, max_length=500)

    def clean(self) -> None:
        # Not there: what is wrong with it has been said.
        if self.cleaned_data.get("word") is Word.NOTE and self.cleaned_data.get("text") == "":
            self.add_error("text", "write what the next one should know")


# So many faults of a catalog are shown; whoever has more fixes these first.
_FAULTS_SHOWN = 8
# What an object that somebody pastes has to be.
_CATALOG = 'must be an object with "packs" and "pipelines"'
_CONTEXT = 'must be an object, such as {"steps_taken": []}'


def _json_object(text: str, *, must_be: str) -> dict[str, object] | None:
    """What somebody typed as a JSON object; None for nothing. Raises ValidationError."""
    if not text.strip():
        return None
    if is_too_deep(text):
        raise forms.ValidationError(f"is not JSON: nested more than {MAX_DEPTH} levels deep")
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(
            f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except ValueError:  # a number of thousands of digits
        raise forms.ValidationError("is not JSON that can be read") from None
    if not isinstance(value, dict):
        raise forms.ValidationError(must_be)
    return value


def _catalog(text: str) -> dict[str, object] | None:
    """A catalog that somebody pasted. Raises ValidationError with all that is wrong with it."""
    value = _json_object(text, must_be=_CATALOG)
    if value is not None:
        try:
            parse_catalog(value)
        except CatalogError as error:
            raise forms.ValidationError(catalog_faults(error)) from None
    return value


def catalog_faults(error: CatalogError) -> list[str]:
    """What is wrong with a catalog, by the place in it."""
    return [
        f"{fault.field.removeprefix('catalog.')}: {fault.message}"
        for fault in error.errors[:_FAULTS_SHOWN]
    ]


class FitForm(forms.Form):
    """What a fit needs. A blank catalog means the project's current one."""

    model = forms.CharField(
        max_length=255,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
        error_messages={"required": "name the model the catalog is for, such as openai/gpt-4o"},
    )
    intent = forms.CharField(
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "say what the agent is to do, in its user's words"},
    )
    catalog = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )

    def clean_catalog(self) -> dict[str, object] | None:
        return _catalog(self.cleaned_data["catalog"])


class PlanForm(forms.Form):
    """What a plan or a route is asked for with. Blank fields are left to the project's settings."""

    intent = forms.CharField(
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 5, "data-search": ""}),
        error_messages={"required": "say what is to be done, in the words of a user"},
    )
    model = forms.CharField(
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
    )
    prompt_variant = one_of(PromptVariant, blank="as the budget says", label="Prompt variant")
    max_tokens = WholeNumber(
        required=False,
        min_value=1,
        max_value=MOST_OUTPUT_TOKENS,
        label="Output, tokens at most",
    )
    context = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    catalog = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )
    catalog_name = forms.CharField(
        required=False,
        max_length=128,
        label="Catalog by name",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    continues = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput())

    def clean_context(self) -> dict[str, object] | None:
        return _json_object(self.cleaned_data["context"], must_be=_CONTEXT)

    def clean_catalog(self) -> dict[str, object] | None:
        return _catalog(self.cleaned_data["catalog"])

    def clean_continues(self) -> str:
        name: str = self.cleaned_data["continues"]
        if "/" in name:  # has no page, whatever else is wrong
            raise forms.ValidationError(f"there is no plan {name} in this project")
        return name

    @property
    def has_more(self) -> bool:
        """Whether a field is filled, or faulty, that is folded away otherwise."""
        names = set(self.fields) - {"intent", "model"}
        return any(self[name].value() or self[name].errors for name in names)


class RouteForm(PlanForm):
    """What a route is asked for with. Its prompt has no variants: only plans have them."""

    prompt_variant = None  # type: ignore[assignment]  # Django's way to leave a field out


class KeyForm(forms.Form):
    """The form of a new API key: a name, scopes that the person may give, an end."""

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "say who will use the key"},
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES],
        error_messages={"required": "tick at least one scope"},
    )
    expires = forms.CharField(
        required=False, max_length=40, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def clean_expires(self) -> datetime | None:
        """When the key ends; None: never. Raises ValidationError for a text that names no moment to
        come."""
        try:
            return parse_expiry(self.cleaned_data["expires"], now=timezone.now())
        except BadExpiry as error:
            raise forms.ValidationError(str(error)) from None


class MemberForm(forms.Form):
    """A person, by name, and the role they are to have. role: not asked of who is removed."""

    do = forms.ChoiceField(choices=[("set", "set"), ("remove", "remove")])
    user = forms.CharField(
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "write the name of an account"},
    )
    role = forms.TypedChoiceField(
        choices=[(role.value, role.value) for role in MemberRole],
        coerce=MemberRole,
        empty_value=MemberRole.VIEWER,
        required=False,
        error_messages={"invalid_choice": "choose viewer, editor or owner"},
    )


class LookForm(forms.Form):
    """How the pages look to one reader. zone empty: the browser's own."""

    theme = forms.ChoiceField(
        choices=[("", "As the system has it"), ("light", "Light"), ("dark", "Dark")],
        required=False,
        label="Color scheme",
    )
    zone = forms.CharField(
        required=False,
        max_length=64,
        label="Zone of times",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Europe/Berlin"}),
    )

    def clean_zone(self) -> str:
        """Raises ValidationError for a name that is no zone's."""
        name = str(self.cleaned_data["zone"])
        if name and find_zone(name) is None:
            raise forms.ValidationError("write a zone such as Europe/Berlin, or leave it empty")
        return name


class EndSessionForm(forms.Form):
    """One of one's own sessions by its number; empty: all others."""

    session = WholeNumber(required=False, min_value=1, max_value=2**62)


class ResetForm(forms.Form):
    """Whose password is forgotten."""

    account = forms.CharField(
        max_length=254,
        label="Name or e-mail address",
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
