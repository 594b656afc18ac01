"""What channels of alerts want of this server's settings, and lack."""

from __future__ import annotations

from collections.abc import Collection

from helmdash import conf
from helmdash.core.alerts.channels import ChannelKind


def missing_settings(kinds: Collection[ChannelKind]) -> tuple[str, ...]:
    """Sentences about the settings without which channels of these kinds send nothing, or send
    less. A test would tell the first; that messages lead nowhere, only who gets one sees."""
    env = conf.env()
    told = []
    if ChannelKind.EMAIL in kinds and not env.smtp_url:
        told.append("HELMDASH_SMTP_URL is not set, so no e-mail is sent.")
    if kinds and not env.public_url:
        told.append(
            "HELMDASH_PUBLIC_URL is not set, so messages have no links: none to what they tell of, "
            "and none by which somebody says that they see to it."
        )
    return tuple(told)
