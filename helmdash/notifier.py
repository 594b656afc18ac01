"""The notifier: messages of alerts on their way out, by the one client of other hosts, or as mail.

What upstreams may not reach, no channel reaches: the same guard looks at the URL and at the address
of every connection. But for the operator's own URLs, which Apprise calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from email.errors import MessageError
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage

from helmdash import conf
from helmdash.core.alerts.channels import HttpPost, Mail, Notice, Outgoing, Target
from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.operations.alerts.delivering import Outcome, Send
from helmdash.operations.mail_server import SomeRefused
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream.client import Timeouts, UpstreamClient, opened_beside
from helmdash.upstream.failures import UpstreamFailed
from helmdash.upstream.retries import asked_seconds
from helmdash.upstream.services import apprise_sending

# A receiver that needs longer holds up what else its project sends; it is asked again.
_SECONDS = 10.0
_TIMEOUTS = Timeouts(connect=_SECONDS, write=_SECONDS, pool=_SECONDS)
# What an answer says of a fault is in its first bytes.
_ANSWER_BYTES = 64 * 1024
_TOLD_CHARS = 300


@contextmanager
def opened() -> Iterator[Send]:
    """What sends the messages of a run side by side, on an event loop and connections of its own.

    Leave it when all that was begun is done: what is under way is cancelled.
    """
    with opened_beside("notifier", timeouts=_TIMEOUTS) as (client, loop):

        def send(target: Target, shaped: Outgoing) -> Future[Outcome]:
            return asyncio.run_coroutine_threadsafe(_send(client, target, shaped), loop)

        yield send


async def _send(client: UpstreamClient, target: Target, shaped: Outgoing) -> Outcome:
    if isinstance(shaped, Notice):
        return await _notify(shaped)
    if isinstance(shaped, Mail):
        return await _begun(_mail, shaped)
    return await _post(client, target, shaped)


async def _post(client: UpstreamClient, target: Target, post: HttpPost) -> Outcome:
    endpoint = Endpoint(
        name=target.name,
        kind=ProviderKind.OPENAI,
        base_url=post.origin,
        # Kept out of what a failure says.
        api_key=target.secret or None,
        allow_private=target.allow_private,
        read_timeout_s=_SECONDS,
    )
    request = HttpRequest(path=post.path, headers=post.headers, body=post.body)
    try:
        async with asyncio.timeout(2 * _SECONDS):
            answer = await client.fetch(
                endpoint, request, limit_bytes=_ANSWER_BYTES, max_attempts=1
            )
    except UpstreamFailed as failure:
        return Outcome(is_sent=False, status=failure.http_status, told=_as_channel(str(failure)))
    except TimeoutError:
        return _no_answer()
    if 200 <= answer.status < 300:
        return Outcome(is_sent=True, status=answer.status)
    # What it says may hold the address, which is a secret; the number says enough.
    return Outcome(
        is_sent=False,
        status=answer.status,
        told=f"it answered {answer.status}",
        retry_after_s=asked_seconds(answer.headers),
    )


async def _notify(notice: Notice) -> Outcome:
    url = conf.apprise_urls().get(notice.name)
    if url is None:
        return Outcome(is_sent=False, told=f"HELMDASH_APPRISE_URLS has no {notice.name} any more")
    sending = asyncio.wrap_future(apprise_sending.begin(notice, url))
    try:
        told = await asyncio.wait_for(sending, 2 * _SECONDS)
    except TimeoutError:
        return _no_answer()
    return Outcome(is_sent=not told, told=told[:_TOLD_CHARS])


def _no_answer() -> Outcome:
    return Outcome(is_sent=False, told=f"no answer within {2 * _SECONDS:.0f} seconds")


def _as_channel(sentence: str) -> str:
    """What the client says of an upstream, said of a channel."""
    words = sentence.replace("Upstream ", "Channel ", 1).replace("The upstream ", "The channel ")
    return words[:_TOLD_CHARS]


async def _begun(work: Callable[[Mail], Outcome], mail: Mail) -> Outcome:
    """Do it in a thread that a server that stops does not wait for; one of a pool it would."""
    ending = Future[Outcome]()
    ending.set_running_or_notify_cancel()  # its end finds it as it is, also once nobody waits

    def run() -> None:
        try:
            ending.set_result(work(mail))
        except Exception as error:
            ending.set_exception(error)

    threading.Thread(target=run, name="notifier-mail", daemon=True).start()
    return await asyncio.wrap_future(ending)


def _message(mail: Mail) -> EmailMessage:
    """With the message's key as its id, by which mail programs take a repeat for the same."""
    host = urlsplit(conf.env().public_url).hostname or "helmdash.invalid"
    headers = {"Message-ID": f"<{mail.key}@{host}>"}
    return EmailMessage(mail.subject, mail.text, None, list(mail.to), headers=headers)


def _mail(mail: Mail) -> Outcome:
    if not settings.EMAIL_HOST:
        return Outcome(is_sent=False, told="HELMDASH_SMTP_URL is not set, so no mail can be sent")
    try:
        _message(mail).send()
    except SomeRefused as error:
        # Sent again it would be there twice for the others.
        return Outcome(is_sent=True, told=str(error))
    except (OSError, ValueError, MessageError) as error:
        # smtplib's errors are OSErrors, a ValueError is an address that no mail can be sent to, the
        # last one a header that cannot be written.
        # Their words may hold a password.
        told = f"the mail server: {type(error).__name__}"
        is_unsendable = isinstance(error, MessageError)
        return Outcome(is_sent=False, told=told, is_unsendable=is_unsendable)
    return Outcome(is_sent=True)
