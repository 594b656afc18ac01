"""One way to write a time everywhere: that of the pages, also in the admin, which shows each in the
TIME_ZONE of the settings."""

from __future__ import annotations

DATETIME_FORMAT = "Y-m-d H:i:s T"
DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
# Tables of the admin say them so.
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
SHORT_DATE_FORMAT = DATE_FORMAT
