"""Points in time for people and programs: RFC 3339, in UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
