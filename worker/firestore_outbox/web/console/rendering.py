"""Pages as HTML: Jinja2 with everything escaped, and times in the zone that the person chose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from firestore_outbox import __version__
from firestore_outbox.web.console.words import (
    ACTIONS,
    CAUSES,
    KINDS,
    PROVIDERS,
    SETTINGS,
    on_a_page,
    preview,
    shown_time,
)

HERE = Path(__file__).parent
STATIC = HERE / "static"
ZONE_COOKIE = "console_zone"


def zone_named(name: str | None) -> ZoneInfo:
    """UTC if there is no such zone. Cookies and addresses have its slash as %2F."""
    try:
        return ZoneInfo(unquote(name or "UTC"))
    except (ValueError, KeyError, OSError):
        return ZoneInfo("UTC")


def shown_span(span: timedelta) -> str:
    """Its largest unit: `3 min`."""
    seconds = abs(span.total_seconds())
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def shown_distance(at: datetime, now: datetime) -> str:
    """`in 3 min`, or `3 min ago`."""
    span = shown_span(at - now)
    return f"in {span}" if at > now else f"{span} ago"


def shown_number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if float(value).is_integer() or value >= 100 else f"{value:,.1f}"


def as_json(value: Any) -> str:
    def plain(one: Any) -> Any:
        return one.astimezone(UTC).isoformat() if isinstance(one, datetime) else str(one)

    return json.dumps(value, default=plain, indent=2, ensure_ascii=False)


class Pages:
    def __init__(self) -> None:
        self._jinja = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._jinja.filters["number"] = shown_number
        self._jinja.filters["json"] = as_json
        self._jinja.filters["preview"] = preview
        self._jinja.globals |= {
            "CAUSES": CAUSES,
            "ACTIONS": ACTIONS,
            "SETTINGS": SETTINGS,
            "KINDS": KINDS,
            "PROVIDERS": PROVIDERS,
        }
        self._jinja.tests["instant"] = lambda value: isinstance(value, datetime)
        self._jinja.globals["version"] = __version__
        self._jinja.globals["ui"] = self._jinja.get_template("macros.html").module

    def page(self, template: str, context: Mapping[str, Any]) -> str:
        return self._jinja.get_template(template).render(_with_times(context))

    def live(self, template: str, context: Mapping[str, Any]) -> str:
        """The part of the page that changes by itself."""
        found = self._jinja.get_template(template)
        return "".join(found.blocks["live"](found.new_context(_with_times(context))))


def _with_times(context: Mapping[str, Any]) -> dict[str, Any]:
    zone, now = context["zone"], context["now"]
    return {
        **context,
        "at": lambda at: shown_time(at, zone, now),
        "distance": lambda at: shown_distance(at, now),
        "iso": lambda at: at.astimezone(UTC).isoformat(),
        "local": lambda sentence: on_a_page(sentence, zone, now),
    }
