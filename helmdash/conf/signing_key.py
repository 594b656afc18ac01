"""The signing key: given, or kept in the data directory."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from helmdash.conf.variables import BadSetting, Env

# In the data directory, its owner's alone.
SECRET_KEY_FILE = "secret-key"  # noqa: S105  (a file name)
# In a process that is to keep none: the one that it uses itself, until there is one to keep.
_passing: list[str] = []


def secret_key(settings: Env) -> str:
    """The signing key: given, or kept owner-only in the data directory and made at first use,
    unless `keep_no_new_key` was called. Raises BadSetting."""
    if settings.secret_key:
        return settings.secret_key
    path = settings.data_dir / SECRET_KEY_FILE
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            if _passing:
                return _passing[0]
            _make_key(path)
        if path.is_fifo():
            # Reading would wait for whoever writes there.
            raise OSError(errno.EINVAL, "it is a pipe")
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadSetting(
            f"HELMDASH_DATA_DIR={settings.data_dir}: the secret key cannot be read or made in "
            f"{path}: {told}"
        ) from None
    if not key:
        raise BadSetting(
            f"HELMDASH_DATA_DIR={settings.data_dir}: {path} is empty: restore it from a backup, or "
            "delete it for a new key (stored provider keys are then lost, sessions end)"
        )
    return key


def keep_no_new_key() -> None:
    """From now on this process leaves no key that it makes. To a restore that comes after one that
    was killed or refused, it would be another key than its archive's, and nobody knows what of."""
    _passing[:] = [secrets.token_urlsafe(48)]


def _make_key(path: Path) -> None:
    """Make a key at the path, owner-only; one that another process made meanwhile stays.

    The file has its name only once it is written: no process finds it half made, also not after a
    power cut.
    """
    key = secrets.token_urlsafe(48)
    handle, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(written, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP):
            raise
        # A file system without hard links, as of a share: the name first, and then what it holds.
        with (
            suppress(FileExistsError),
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file,
        ):
            file.write(key)
    finally:
        Path(written).unlink(missing_ok=True)
