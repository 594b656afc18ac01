"""Django settings, all derived from helmdash.conf: operators change the environment, not this."""

from __future__ import annotations

import logging
import sys
from time import monotonic
from typing import Any
from urllib.parse import unquote, urlsplit

import dj_database_url
from csp.constants import NONE, SELF

from helmdash import conf, installation
from helmdash.core.text.visible import visible_lines

try:
    ENV = conf.env()
    _SECRET_KEY = conf.secret_key(ENV)
except conf.BadSetting as error:
    sys.exit(f"HelmDash cannot start: {error}")

DEBUG = ENV.debug
SECRET_KEY = _SECRET_KEY

# The last two are one address, as IPv6 and as browsers spell 127.0.0.1.
_LOOPBACK = ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"]
_BOUND = [] if ENV.host in ("0.0.0.0", "::") else [ENV.host]  # noqa: S104  (compared, not bound)
_PUBLIC = [host] if (host := urlsplit(ENV.public_url).hostname) else []
ALLOWED_HOSTS = [*_LOOPBACK, *_BOUND, *_PUBLIC, *ENV.allowed_hosts]
CSRF_TRUSTED_ORIGINS = [ENV.public_url] if ENV.public_url else []

_HTTPS = ENV.public_url.startswith("https://")
SESSION_ENGINE = "helmdash.records.access.session_store"
CSRF_FAILURE_VIEW = "helmdash.pages.views.faults.form_out_of_date"
SESSION_COOKIE_SECURE = _HTTPS
CSRF_COOKIE_SECURE = _HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "helmdash.records",
    "helmdash.cli",
    "helmdash.pages",
    "helmdash.records.admin_app.MembersAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "simple_history",
    "import_export",
    "csp",
]

MIDDLEWARE = [
    # Outermost, so that every frame of a request is above it.
    "helmdash.doors.room.RoomMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    # A page of 100 kB becomes 12. What BREACH guesses at is masked anew in every page (the CSRF
    # token), and up to 100 random bytes blur each length (ADR 6).
    "helmdash.pages.middleware.CompressPagesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "helmdash.pages.middleware.OriginMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "helmdash.pages.middleware.SessionsMiddleware",
    "helmdash.pages.middleware.SignInRequiredMiddleware",
    "helmdash.pages.braking.TooManyTriesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
    "helmdash.pages.addresses.AddressesMiddleware",
    # It changes what a page says, and those around it count its bytes.
    "helmdash.pages.visibility.VisibilityMiddleware",
    "helmdash.pages.middleware.MethodMiddleware",
    "helmdash.pages.middleware.RefusedFormMiddleware",
    # Innermost: who asks is known, and what fails at the replica is done again.
    "helmdash.doors.replica.ReplicaMiddleware",
]

ROOT_URLCONF = "helmdash.urls"
ASGI_APPLICATION = "helmdash.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [installation.TEMPLATES],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

FORM_RENDERER = "helmdash.pages.forms.form_renderer.QuickRenderer"

# A write transaction takes SQLite's lock at its start (IMMEDIATE) and waits for it, so that two
# writers queue up instead of failing with "database is locked" half-way. FULL keeps a 2xx true
# across a power cut. A report of one call changes 30 pages, which the log takes whole: with 4 kB
# instead of 16 it costs 30 % less, and a batch a tenth less as long as the log is folded in after
# as many bytes as before (16 MB). A file that is there keeps the pages it was made with.
# What is deleted is overwritten: some builds of SQLite do so anyway, others leave it in free pages.
# A connection caches 2 MB, SQLite's own measure: a process has some twenty-five of them, which with
# 16 MB each came to 393 MB, and pages of 1,000,000 calls were no quicker (3 % slower; the kernel
# has them too). The writer has few, and more (settings_writer).
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 60,
    "init_command": "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    " PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-2000; PRAGMA secure_delete=ON;",
}
# One process holds at most this many connections: a default server has 100 for everybody.
_POOL_MAX = max(4, 60 // ENV.workers)
# How long a page waits for a database that is unavailable before it says so: longer than a restart
# of the server takes to accept connections again, shorter than people and load balancers are
# patient. The pool, too, gives up on a connection after this, so that it tries anew soon after the
# restart.
_PATIENCE_SECONDS = 5


def _postgres(url: str, *, patience_s: int, silence_s: int, ready: int) -> dict[str, Any]:
    """Settings of a PostgreSQL database with a pool of connections, `ready` of them always open.

    patience_s: for a connection. silence_s: until a server that vanished without a word (a cut
    cable, a host that lost power) is given up, which else takes hours.
    """
    found: dict[str, Any] = dict(dj_database_url.parse(url))
    # A pooler may give each transaction another connection (docs/scaling.md), and a cursor of the
    # server's outlives none.
    found["DISABLE_SERVER_SIDE_CURSORS"] = True
    found["OPTIONS"] = {
        # So that others, and a restore, tell ours from theirs.
        "application_name": "helmdash",
        "connect_timeout": patience_s,
        "keepalives_idle": silence_s // 2,
        "keepalives_interval": silence_s // 4,
        "keepalives_count": 2,
        "tcp_user_timeout": silence_s * 1000,
        **found.get("OPTIONS", {}),
        "pool": {
            "min_size": ready,
            "max_size": _POOL_MAX,
            "timeout": patience_s,
            "reconnect_timeout": patience_s,
        },
    }
    return found


DATABASES: dict[str, dict[str, Any]] = {"default": {}}
if ENV.database_url.startswith("postgres"):
    DATABASES["default"] = _postgres(
        ENV.database_url, patience_s=_PATIENCE_SECONDS, silence_s=20, ready=1
    )
else:
    DATABASES["default"] = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ENV.database_url.removeprefix("sqlite:///")
        or str(ENV.data_dir / "helmdash.sqlite3"),
        "OPTIONS": _SQLITE_OPTIONS,
    }
if ENV.replica_url:
    # What it does not answer soon, the primary does. No connection stands ready: where the replica
    # is away, nobody is to try again and again.
    DATABASES["replica"] = _postgres(ENV.replica_url, patience_s=2, silence_s=4, ready=0)
DATABASE_ROUTERS = ["helmdash.records.replica.ReplicaRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PASSWORD_HASHERS = ["helmdash.operations.access.password_hashing.QueuedPBKDF2Hasher"]
# The role of a membership decides; groups and single permissions do not (docs/adr/0018).
AUTHENTICATION_BACKENDS = ["helmdash.records.backend.MembershipBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# How a link reaches who has forgotten their password; without a server none is offered.
_SMTP = urlsplit(ENV.smtp_url)
EMAIL_BACKEND = "helmdash.operations.mail_server.EmailBackend"
EMAIL_HOST = _SMTP.hostname or ""
EMAIL_USE_SSL = _SMTP.scheme == "smtps"
# Within this machine nobody listens, and few mail servers there have a certificate.
EMAIL_USE_TLS = _SMTP.scheme == "smtp" and EMAIL_HOST not in ("localhost", "127.0.0.1", "::1")
EMAIL_PORT = _SMTP.port or (465 if EMAIL_USE_SSL else 587 if EMAIL_USE_TLS else 25)
EMAIL_HOST_USER = unquote(_SMTP.username or "")
EMAIL_HOST_PASSWORD = unquote(_SMTP.password or "")
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = ENV.mail_from or f"helmdash@{_PUBLIC[0] if _PUBLIC else 'localhost'}"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
# The sign-in link of the terminal is for the person who has just started the server.
PASSWORD_RESET_TIMEOUT = 24 * 3600

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "helmdash.conf.formats"

STATIC_URL = "/static/"
STATICFILES_DIRS = [installation.STATIC]
STATIC_ROOT = ENV.data_dir / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
}
# Pages name a file by what is in it: copies under their own names would be packed for nobody.
SERVESTATIC_KEEP_ONLY_HASHED_FILES = True

# Strict: no inline script or style, nothing from another host (ADR 6).
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

DATA_UPLOAD_MAX_MEMORY_SIZE = ENV.max_body_bytes
SILENCED_SYSTEM_CHECKS: list[str] = []
SIMPLE_HISTORY_REVERT_DISABLED = False
IMPORT_EXPORT_USE_TRANSACTIONS = True


class VisibleFormatter(logging.Formatter):
    """Log lines name models and clients, and are read in terminals: nothing in them is unseen.

    Nor do they hold rows: of what PostgreSQL says only the sentence is told, without the lines
    (DETAIL, CONTEXT) that quote values.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, or lines with a traceback."""
        return visible_lines(super().format(record))

    def formatException(self, ei: Any) -> str:
        """The traceback."""
        told, error, seen = super().formatException(ei), ei[1], set[int]()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            sentence = getattr(getattr(error, "diag", None), "message_primary", None)
            if sentence:
                told = told.replace(str(error), sentence)
            error = error.__cause__ or error.__context__
        return told


class FaultsAlone(logging.Filter):
    """Without the answers that are given on purpose. What makes a 503 is told where it begins and
    ends (helmdash.doors.patience, the recorder), and not by each of the requests of an outage; a
    502 is a plan that failed, which is told with its cause (helmdash.operations.planning)."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is logged; with a traceback it says more than that."""
        is_meant = getattr(record, "status_code", None) in (502, 503)
        return not is_meant or record.exc_info is not None


class OnceAMinute(logging.Filter):
    """One line a minute of each kind: a pool tells of each try to reach a database that is away."""

    def __init__(self) -> None:
        super().__init__()
        self._told_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is logged. Kinds differ in their words, before the values are in them."""
        told_at, moment = self._told_at.get(record.msg), monotonic()
        if told_at is not None and moment - told_at < 60:
            return False
        self._told_at[record.msg] = moment
        return True


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": VisibleFormatter,
            "fmt": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        }
    },
    "filters": {"faults_alone": {"()": FaultsAlone}, "once_a_minute": {"()": OnceAMinute}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "helmdash": {"level": ENV.log_level},
        # A 404 or 422 is the client's affair and is told to it; only our own faults are logged.
        "django.request": {"level": "ERROR", "filters": ["faults_alone"]},
        "psycopg.pool": {"filters": ["once_a_minute"]},
        # Their words may hold the URL of a service, which is a secret; what came of a message is in
        # the log of alerts. Without a handler of their own, nothing below this level is shown.
        "apprise": {"level": "CRITICAL"},
        "urllib3": {"level": "CRITICAL"},
        # With a traceback for each, which anybody can cause; the page says what is wrong.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "django.security.DisallowedModelAdminLookup": {"level": "CRITICAL"},
        "django.security.DisallowedModelAdminToField": {"level": "CRITICAL"},
        "django.security.DisallowedRedirect": {"level": "CRITICAL"},
        "django.security.TooManyFieldsSent": {"level": "CRITICAL"},
        "django.security.TooManyFilesSent": {"level": "CRITICAL"},
    },
}
