"""Apprise, an extra that the operator installs and gives URLs: a message to one of its services.

Source: github.com/caronc/apprise, 2.2: `Apprise.instantiate`, `notify`, `AppriseAsset`. It brings a
client of its own, which the guard of upstreams does not see: only the operator's URLs get here.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Final

from helmdash.core.alerts.channels import Notice

# Whatever goes on for ever inside of a service keeps its thread: beyond so many no more are begun.
_MOST_THREADS: Final = 16
_free = threading.BoundedSemaphore(_MOST_THREADS)


def begin(notice: Notice, url: str) -> Future[str]:
    """Begin to send on a thread of its own: Apprise waits for its sockets.

    The future has why it was not sent, a sentence without anything of the URL; "": it was. Who does
    not wait for it any more leaves it alone: it ends by itself.
    """
    future = Future[str]()
    # From here on nobody cancels it, so that whatever comes of it can be noted.
    future.set_running_or_notify_cancel()
    if not _free.acquire(blocking=False):
        future.set_result("earlier messages by Apprise have not ended yet")
        return future

    def work() -> None:
        try:
            future.set_result(_send(notice, url))
        except Exception as error:
            # A service's own words may hold its URL.
            future.set_result(f"Apprise: {type(error).__name__}")
        finally:
            _free.release()

    # A daemon: the server stops without it.
    threading.Thread(target=work, name="apprise", daemon=True).start()
    return future


def _send(notice: Notice, url: str) -> str:
    try:
        # Its hundred services take a fifth of a second to load, so who has none does not.
        import apprise
    except ImportError:
        return "HELMDASH_APPRISE_URLS needs Apprise: pip install 'apprise>=2.2'"
    # The names of conversations are not for it to fill in, to the disk it writes nothing, and the
    # time is told by who waits.
    asset = apprise.AppriseAsset(
        allow_templates=False,
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        service_timeout=0,
    )
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        return f"Apprise cannot read the URL of {notice.name} in HELMDASH_APPRISE_URLS"
    sender = apprise.Apprise(asset=asset)
    sender.add(service)
    is_sent = sender.notify(
        title=notice.title,
        body=notice.text,
        notify_type=apprise.NotifyType(notice.tone),
        body_format=apprise.NotifyFormat.TEXT,
    )
    return "" if is_sent else f"Apprise could not deliver it to {notice.name}"
