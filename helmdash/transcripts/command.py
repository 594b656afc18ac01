"""The commands on a user's own machine: `python helmdash.pyz import` and `statusline`."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

from helmdash.transcripts.agents import NAMES, readers_of
from helmdash.transcripts.importing import CannotSend, Importer
from helmdash.transcripts.posting import ApiSender
from helmdash.transcripts.reading import Home
from helmdash.transcripts.sent_files import SentFiles, state_file
from helmdash.transcripts.status_line import address_in, key_in, show_status_line
from helmdash.transcripts.telling import ProgressBar, summary_lines

GOES_ON = "what was sent is stored, and another run goes on with the rest"
# What shells expect of a program that Ctrl-C ended.
_STOPPED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that the command has wherever it runs."""
    parser.add_argument(
        "--from",
        dest="agents",
        default="",
        metavar="AGENTS",
        help=f"Whose transcripts, with commas between (default: all of {', '.join(NAMES)}).",
    )
    parser.add_argument("--home", type=Path, help="Another home folder to look in.")
    parser.add_argument(
        "--watch", action="store_true", help="Go on as files grow, until it is stopped."
    )
    parser.add_argument(
        "--texts",
        action="store_true",
        help="Send replies, error texts and folders as well. Else sizes, times and ids alone.",
    )


def home_of(path: Path | None) -> Home:
    """The home to look in. The environment says where the user's own files lie, not another's."""
    if path is not None:
        return Home(path=path.expanduser().absolute(), system=sys.platform)
    return Home(path=Path.home(), system=sys.platform, variables=dict(os.environ))


def run(importer: Importer, *, is_watching: bool, bar: ProgressBar) -> int:
    """Carry a run out and say how it went; 0, 1 where something was not taken, or 130 where Ctrl-C
    ended it before its time.

    Raises CannotSend.
    """
    is_stopped = False
    try:
        if is_watching:
            print("Watching; Ctrl-C ends it.", file=sys.stderr)
            importer.watch()
        else:
            importer.run()
    except KeyboardInterrupt:
        is_stopped = not is_watching
    finally:
        bar.close()
        print("\n".join(summary_lines(importer.summaries)))
    if is_stopped:
        print(f"stopped; {GOES_ON}", file=sys.stderr)
        return _STOPPED
    return 1 if any(each.rejected for each in importer.summaries.values()) else 0


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 all was sent, 1 something was not taken, 2 nothing could be done."""
    parser = argparse.ArgumentParser(
        prog="helmdash.pyz",
        description="Bring what agents already wrote into HelmDash, and show its light.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    importing = commands.add_parser(
        "import", help="Read the transcripts of agents on this machine and report their calls."
    )
    add_arguments(importing)
    importing.add_argument("--url", help="Where HelmDash is (or HELMDASH_URL).")
    importing.add_argument("--key", help="A key with the scope record (or HELMDASH_API_KEY).")
    showing = commands.add_parser(
        "statusline", help="Claude Code's status line: reads its JSON, prints HelmDash's light."
    )
    showing.add_argument("--url", help="Where HelmDash is (or HELMDASH_URL, ANTHROPIC_BASE_URL).")
    showing.add_argument("--key", help="Its key (or HELMDASH_API_KEY, ANTHROPIC_AUTH_TOKEN).")
    for stream in (sys.stdout, sys.stderr):
        # Names of files have characters that are not in every terminal's set.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = parser.parse_args(arguments)
    if given.command == "statusline":
        # Claude Code writes and reads UTF-8, whatever the system's own is.
        for stream in (sys.stdin, sys.stdout):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="replace")
        return show_status_line(
            sys.stdin,
            sys.stdout,
            url=given.url or address_in(os.environ),
            key=given.key or key_in(os.environ),
            variables=os.environ,
        )
    url = given.url or os.environ.get("HELMDASH_URL") or "http://localhost:8000"
    key = given.key or os.environ.get("HELMDASH_API_KEY") or ""
    bar = ProgressBar(sys.stderr)
    try:
        readers = readers_of([name.strip() for name in given.agents.split(",") if name.strip()])
        home = home_of(given.home)
        state = state_file(
            f"{url} {key[:12]} {home.path} {given.texts}",
            system=sys.platform,
            home=Path.home(),
            variables=os.environ,
        )
        importer = Importer(
            readers,
            home,
            send=ApiSender(url, key, is_patient=given.watch, tell=bar.say),
            texts=given.texts,
            sent=SentFiles(state),
            progress=bar,
        )
        return run(importer, is_watching=given.watch, bar=bar)
    except (CannotSend, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
