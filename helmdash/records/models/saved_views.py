"""Saved views: a list as somebody wants to see it again, by name."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.records.fields import name_field, one_of
from helmdash.records.models.access import Project

VIEW_LISTS = ["calls", "conversations", "plans", "trims"]
VIEW_NAME_CHARS = 60
# As long as addresses that every browser and proxy passes on.
VIEW_ADDRESS_CHARS = 2000


class SavedView(models.Model):
    """What the address of a list says, by a name; somebody's own, or everybody's in the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(
        "auth.User",
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Whose it is. Null: the project's.",
    )
    noun = models.CharField(max_length=16, help_text="The list, as its address has it.")
    name = models.CharField(max_length=VIEW_NAME_CHARS)
    address = models.CharField(
        max_length=VIEW_ADDRESS_CHARS, blank=True, help_text="What stands behind the question mark."
    )
    by = name_field(150, "Who saved it.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "noun", "user", "name"],
                condition=Q(user__isnull=False),
                name="saved_view_own",
            ),
            models.UniqueConstraint(
                fields=["project", "noun", "name"],
                condition=Q(user__isnull=True),
                name="saved_view_shared",
            ),
            one_of("saved_view", "noun", VIEW_LISTS),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.noun}"


class FirstView(models.Model):
    """The view that a list opens with for somebody; no row: all of it."""

    user = models.ForeignKey(
        "auth.User", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    noun = models.CharField(max_length=16)
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="first_of")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "project", "noun"], name="first_view"),
            one_of("first_view", "noun", VIEW_LISTS),
        ]

    def __str__(self) -> str:
        return f"{self.view} first"
