"""`manage.py member add|remove|list|link`: who may do what in which project."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.cli.serving import running_url
from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.core.text.visible import visible_name
from helmdash.operations.access import sign_in_links
from helmdash.operations.access.keys import AccessError
from helmdash.operations.access.members import remove_member, set_member
from helmdash.queries.access.access import members

_ROLES = (
    "viewer: reads; editor: also care, reminders, plans, and the project's budgets; "
    "owner: also keys, members, upstreams, catalogs, settings"
)


class Command(BaseCommand):
    help = "Give people a role in a project, and take it away. Who has none sees nothing of it."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser(
            "add",
            help="Add a member, or change a role. Makes the account when there is none, and prints "
            "a sign-in link for it; `changepassword USER` gives it a password.",
        )
        add.add_argument("user", metavar="USER", help="User name.")
        add.add_argument("project", metavar="PROJECT", help="Slug of the project.")
        add.add_argument(
            "--role",
            choices=[role.value for role in MemberRole],
            default=MemberRole.VIEWER.value,
            help=f"{_ROLES}. Default: viewer.",
        )
        remove = actions.add_parser("remove", help="End somebody's part in a project.")
        remove.add_argument("user", metavar="USER")
        remove.add_argument("project", metavar="PROJECT")
        listed = actions.add_parser("list", help="List members, of all projects or of one.")
        listed.add_argument("project", metavar="PROJECT", nargs="?")
        link = actions.add_parser("link", help="Print a link that signs somebody in, once.")
        link.add_argument("user", metavar="USER")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, "_" + options["action"])(options)
        except AccessError as error:
            raise CommandError(str(error)) from None

    def _add(self, options: dict[str, Any]) -> None:
        user, project = options["user"], options["project"]
        role = MemberRole(options["role"])
        is_new = set_member(actor=SHELL, user=user, project=project, role=role)
        self.stdout.write(f"{user} is {role.value} in {project}.")
        if is_new:
            self._print_link(user)

    def _remove(self, options: dict[str, Any]) -> None:
        remove_member(actor=SHELL, user=options["user"], project=options["project"])
        self.stdout.write(f"{options['user']} is no member of {options['project']} any more.")

    def _list(self, options: dict[str, Any]) -> None:
        found = members(project=options["project"])
        if not found:
            self.stdout.write("No members. Superusers need no membership: they may do everything.")
        for each in found:
            self.stdout.write(f"{each.project}  {visible_name(each.user)}  {each.role.value}")

    def _link(self, options: dict[str, Any]) -> None:
        self._print_link(options["user"])

    def _print_link(self, user: str) -> None:
        path = sign_in_links.find_link_path(username=user)
        if path is None:
            raise CommandError(f"user: there is no active account called {user}")
        self.stdout.write(f"Sign in     {running_url(conf.env())}{path}")
        self.stdout.write("            (this link works once, for a day)")
