"""`manage.py up`: everything between a fresh checkout and a serving HelmDash, safe to repeat."""

from __future__ import annotations

import hashlib
import logging
import os
import resource
import signal
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
import uvicorn.supervisors
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash import __version__, conf
from helmdash.cli.base import BaseCommand
from helmdash.cli.base_url import base_url
from helmdash.cli.migrating import MigrateCommand
from helmdash.cli.refused_upstreams import refused_upstreams
from helmdash.cli.service_manager import ServiceManager
from helmdash.cli.serving import serving_at, told_as_serving
from helmdash.cli.writer.keeping import writer_process
from helmdash.core.access.permissions import SHELL
from helmdash.installation import SHELL_COMMAND
from helmdash.operations.access import keys, members, project_settings, sign_in_links
from helmdash.operations.budgets import shipped
from helmdash.operations.database.months import make_ahead
from helmdash.operations.database.set_up_alone import set_up_alone
from helmdash.operations.demo.fixtures import read_fixture
from helmdash.operations.exporting.environment import follow_environment
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.queries.access.access import default_project

# Connections beyond their limit are answered as well, up to twice as many.
_SHOUTING = 2
# The database, the spool, upstreams and the interpreter itself.
_OTHER_FILES = 1000


class Command(BaseCommand):
    help = "Set up what is missing (tables, budgets, demo catalog, first admin and key) and serve."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--setup-only", action="store_true", help="Do all set-up, then stop instead of serving."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        env = conf.env()
        self._manager = ServiceManager()
        if env.public_url.startswith("https://") and not env.trusted_proxies:
            self.stderr.write(
                "Warning: HELMDASH_PUBLIC_URL is https, so a proxy stands in front, but "
                "HELMDASH_TRUSTED_PROXIES names none: limits count all clients as that one address."
            )
        if not options["setup_only"]:
            _check_port(env)
            where = serving_at(env)
            if where is not None:
                self.stderr.write(
                    f"A server runs on {env.data_dir} already, at {where}: both serve the same."
                )
        # What is made from here on (database, spool, keys) is its owner's alone.
        os.umask(0o077)
        self._manager.says("Setting up: tables, budgets, keys")
        with set_up_alone(
            env.data_dir,
            say_waiting=lambda: self._say(
                "Another `up` sets this up at the moment; waiting for it."
            ),
        ):
            call_command(MigrateCommand(self._say), interactive=False, verbosity=0)
            make_ahead(now=timezone.now())
            project_settings.ensure_project()
            loaded = shipped.load_budgets()
            self._load_demo_catalog()
            password = members.ensure_admin(password=env.admin_password)
            key = keys.ensure_bootstrap_key(secret=env.bootstrap_api_key)
            # Before the first call: one waits for the exporters that there are when it is recorded.
            follow_environment()
            _collect_static()
            serves = not options["setup_only"]
            self._print_welcome(
                env, password, key.secret if key else None, len(loaded.added), serves=serves
            )
        if options["setup_only"]:
            return
        with (
            told_as_serving(env),
            self._manager.told_when_ready(env),
            nullcontext() if env.writer == "thread" else writer_process(),
        ):
            _serve(env)

    def _say(self, line: str) -> None:
        """Say what is waited for; `systemctl status` shows the last one."""
        self.stderr.write(line)
        self._manager.says(line)

    def _load_demo_catalog(self) -> None:
        """A first catalog to fit; a project that has one already keeps it."""
        project = default_project()
        from helmdash.queries.fitting import catalog as catalogs

        if catalogs.find(project_id=project.id) is None:
            import_catalog(
                actor=SHELL,
                project_id=project.id,
                name="demo",
                body=read_fixture("catalog"),
                now=timezone.now(),
            )

    def _print_welcome(
        self, env: conf.Env, password: str | None, key: str | None, added: int, *, serves: bool
    ) -> None:
        base = base_url(env)
        database = settings.DATABASES["default"]
        where = (
            database["NAME"]
            if database["ENGINE"].endswith("sqlite3")
            else f"PostgreSQL, database {database['NAME']} on {database['HOST'] or 'this machine'}"
        )
        say = self.stdout.write
        say("")
        say(f"HelmDash {__version__}")
        say(f"  Dashboard   {base}/")
        # What is printed is kept in logs: a link only for whoever sits at the terminal, and as long
        # as nobody has come in by one.
        link = sign_in_links.find_link_path(username=members.ADMIN_NAME)
        is_wanted = self.stdout.isatty() or not sign_in_links.has_signed_in(
            username=members.ADMIN_NAME
        )
        if link and is_wanted:
            say(f"  Sign in     {base}{link}")
            say("              (this link works once, for a day)")
        else:
            say(f"  Sign in     {base}/login/   (for a link that works once:")
            say(f"              {SHELL_COMMAND} member link {members.ADMIN_NAME})")
        if password and not env.admin_password:
            say(f"  Admin       {members.ADMIN_NAME} / {password}   (shown once; keep it)")
        elif password:
            say(f"  Admin       {members.ADMIN_NAME}, with the password of HELMDASH_ADMIN_PASSWORD")
        elif env.admin_password:
            name = members.ADMIN_NAME
            say(f"  Admin       {name}, as it was: HELMDASH_ADMIN_PASSWORD is for the first start;")
            say(f"              now: {SHELL_COMMAND} changepassword {name}")
        if key and not env.bootstrap_api_key:
            say(f"  API key     {key}   (shown once; keep it)")
        elif env.bootstrap_api_key:
            known = keys.prefix_of(secret=env.bootstrap_api_key)
            say(f"  API key     {known}…, the one of HELMDASH_BOOTSTRAP_API_KEY")
        else:
            say("  API key     shown at the first start; for another:")
            say(f"              {SHELL_COMMAND} apikey create --name NAME")
        say(f"  Gateway     {base}/v1   (base_url of an OpenAI client, with a key of HelmDash)")
        say(f"              other clients: {base}/connect/ and {base}/settings/gateway/")
        given = conf.environment_upstreams()
        if given:
            names = ", ".join(each.name for each in given)
            say(f"  Upstreams   {names}   (of the environment)")
        elif key:
            # A first start: what a stranger does not know yet.
            say("  Upstreams   none yet: start with OPENAI_API_KEY=… or another provider's key, or")
            say(f"              see {base}/settings/upstreams/")
        say(f"  Data        {where}")
        for line in refused_upstreams(given):
            say(f"  Upstream    {line}")
        if added:
            say(f"  Budgets     {added} rows loaded; edit them at {base}/budgets/")
        say("")
        say("Record a first call:")
        say("")
        # A key of the environment is named, never shown: the shell that set it can fill it in.
        named = "$HELMDASH_BOOTSTRAP_API_KEY" if env.bootstrap_api_key else "$HELMDASH_API_KEY"
        say(snippet(base, named if env.bootstrap_api_key or not key else key))
        say("")
        served = "Ctrl-C stops the server."
        say(served if serves else f"All is set up. To serve: {SHELL_COMMAND} up")
        sys.stdout.flush()


def snippet(base: str, key: str) -> str:
    """The first call, to paste into a shell."""
    return (
        f"  curl -sS {base}/api/v1/calls \\\n"
        f'    -H "Authorization: Bearer {key}" \\\n'
        '    -H "Content-Type: application/json" \\\n'
        '    -d \'{"conversation": "hello", "model": "openai/gpt-4o", "finish_reason": "stop",\n'
        '         "usage": {"prompt_tokens": 96000, "completion_tokens": 350}}\''
    )


def _check_port(env: conf.Env) -> None:
    """Say in one line that the port is taken, before anything else happens."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            env.host, env.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        port, host = (conf.given_variable(each) or each.upper() for each in ("port", "host"))
        raise CommandError(
            f"cannot listen on {env.host}:{env.port} ({reason}). "
            f"Choose another with {port}=… or {host}=…"
        ) from None


def _collect_static() -> None:
    """Collect static files when one of them, or a package that brings some, has changed."""
    root = Path(settings.STATIC_ROOT)
    stamp = root / ".collected"
    mark = _static_mark()
    if stamp.exists() and stamp.read_text(encoding="ascii") == mark:
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(mark, encoding="ascii")


def _static_mark() -> str:
    """What changes with any static file, of ours or of a package that brings some."""
    digest = hashlib.sha256(__version__.encode())
    for finder in finders.get_finders():
        for name, storage in finder.list([]):
            digest.update(name.encode() + Path(storage.path(name)).read_bytes())
    return digest.hexdigest()


def _leave(number: int, frame: FrameType | None) -> None:
    """uvicorn repeats the signal that stopped it once all is done; that is a clean end."""
    sys.exit(0)


def _end_with_terminal() -> None:
    """Stop in order when the terminal is closed, as for SIGTERM; go on where `nohup` says so."""
    stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    if not stays:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    # Several processes have uvicorn's own handler, which starts all of them anew.
    several = uvicorn.supervisors.Multiprocess
    several.handle_hup = _go_on if stays else several.handle_term  # type: ignore[method-assign,assignment]


def _go_on(_: uvicorn.supervisors.Multiprocess) -> None:
    """Do nothing about a signal."""


def _serve(env: conf.Env) -> None:
    signal.signal(signal.SIGTERM, _leave)
    _end_with_terminal()
    _raise_file_limit(env)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    uvicorn.run(
        "helmdash.asgi:application",
        host=env.host,
        port=env.port,
        workers=env.workers,
        # The recorder and the connections to upstreams start and end with it.
        lifespan="on",
        log_level="warning",
        use_colors=False if os.environ.get("NO_COLOR") else None,
        access_log=False,
        server_header=False,
        # helmdash.doors.callers.proxies reads them, from proxies that the operator has named.
        proxy_headers=False,
        timeout_graceful_shutdown=env.stop_seconds,
        # By name, so that each of several workers finds it.
        http="helmdash.doors.http.protocol:BoundedProtocol",
        ws="none",
    )


def _raise_file_limit(env: conf.Env) -> None:
    """Each connection is an open file; many systems allow 1,024 until somebody asks for more."""
    wanted = _SHOUTING * env.max_connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
