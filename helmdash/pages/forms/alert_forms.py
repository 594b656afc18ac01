"""The forms of alerts: a channel, and a rule. What the values mean is for operations to judge."""

from __future__ import annotations

from collections.abc import Collection

from django import forms

from helmdash.core.alerts import channels, rules
from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.rules import RuleKind
from helmdash.operations.alerts.editing import ChannelEdit, RuleEdit
from helmdash.pages.forms.forms import WholeNumber
from helmdash.queries.alerts.rules import ChannelInfo, RuleInfo

_MOST_NUMBER = 2**31 - 1  # what the column holds; the kind's own bounds are narrower
_PLAIN = {"autocomplete": "off"}


def _clock() -> forms.TimeInput:
    return forms.TimeInput(attrs={"type": "time"}, format="%H:%M")


class ChannelForm(forms.Form):
    """A channel. Address and secret are typed or left alone; what is stored is never shown."""

    kind = forms.TypedChoiceField(
        choices=[(kind.value, row.words) for kind, row in channels.KINDS.items()],
        coerce=ChannelKind,
    )
    name = forms.CharField(max_length=rules.NAME_CHARS, widget=forms.TextInput(attrs=_PLAIN))
    address = forms.CharField(required=False, max_length=3000, widget=forms.TextInput(attrs=_PLAIN))
    secret = forms.CharField(
        required=False,
        max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    allow_private = forms.BooleanField(required=False)
    enabled = forms.BooleanField(required=False, initial=True)

    def named(self, kind: ChannelKind) -> ChannelForm:
        """Say what address and secret are in a channel of this kind. Before it is validated: from
        then on Django keeps the labels."""
        row = channels.KINDS[kind]
        for field, words in (("address", row.address), ("secret", row.credential)):
            self.fields[field].label = words[:1].upper() + words[1:]
        return self

    def offer(self, names: Collection[str], *, is_new: bool) -> ChannelForm:
        """Have the address chosen among names, where a channel's address is one."""
        first = "choose one" if is_new else "keep what is stored"
        choices = [("", first if names else "the operator gave none")]
        choices += [(name, name) for name in names]
        self.fields["address"].widget = forms.Select(choices=choices)
        return self

    @staticmethod
    def values_of(info: ChannelInfo) -> dict[str, object]:
        """What a stored channel's form begins with."""
        return {
            "kind": info.kind,
            "name": info.name,
            "allow_private": info.allow_private,
            "enabled": info.enabled,
        }

    def edit(self) -> ChannelEdit:
        """What was typed."""
        return ChannelEdit(**self.cleaned_data)


class RuleForm(forms.Form):
    """A rule; `kind` says which of the numbers count."""

    kind = forms.TypedChoiceField(
        choices=[(kind.value, row.words) for kind, row in rules.KINDS.items()],
        coerce=RuleKind,
        widget=forms.HiddenInput(),
    )
    name = forms.CharField(max_length=rules.NAME_CHARS, widget=forms.TextInput(attrs=_PLAIN))
    level = forms.ChoiceField(
        required=False, choices=[("caution", "caution"), ("critical", "critical")]
    )
    threshold = WholeNumber(
        required=False,
        min_value=0,
        max_value=_MOST_NUMBER,
        label="At least",
    )
    minutes = WholeNumber(required=False, min_value=0, max_value=_MOST_NUMBER)
    group_s = WholeNumber(
        min_value=0,
        max_value=_MOST_NUMBER,
        initial=rules.DEFAULT_GROUP_S,
        label="Gather, seconds",
    )
    quiet_start = forms.TimeField(
        required=False,
        label="Quiet from",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    quiet_end = forms.TimeField(
        required=False,
        label="Quiet until",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    zone = forms.CharField(max_length=64, initial="UTC", widget=forms.TextInput(attrs=_PLAIN))
    channels = forms.TypedMultipleChoiceField(required=False, coerce=int)
    enabled = forms.BooleanField(required=False)

    def offer(self, found: tuple[ChannelInfo, ...]) -> RuleForm:
        """Say which channels there are to choose from."""
        field = self.fields["channels"]
        assert isinstance(field, forms.TypedMultipleChoiceField)
        field.choices = [(each.id, each.name) for each in found]
        return self

    @staticmethod
    def values_of(info: RuleInfo) -> dict[str, object]:
        """What a stored rule's form begins with."""
        told = info.settings
        return {
            "kind": told.kind,
            "name": told.name,
            "level": told.level,
            "threshold": told.threshold,
            "minutes": told.minutes,
            "group_s": told.group_s,
            "quiet_start": told.quiet.start if told.quiet else None,
            "quiet_end": told.quiet.end if told.quiet else None,
            "zone": info.zone,
            "channels": list(info.channels),
            "enabled": info.enabled,
        }

    @staticmethod
    def values_for(kind: RuleKind) -> dict[str, object]:
        """What the form of a new rule of a kind begins with."""
        row = rules.usual(kind)
        return {
            "kind": kind,
            "name": row.name,
            "level": row.level,
            "threshold": row.threshold,
            "minutes": row.minutes,
            "group_s": row.group_s,
            "zone": "UTC",
            "enabled": True,
        }

    def edit(self) -> RuleEdit:
        """What was typed."""
        given = dict(self.cleaned_data)
        return RuleEdit(**{**given, "channels": tuple(given["channels"])})
