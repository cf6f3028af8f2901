"""Fields of documents as pydantic checks them, and what it finds in the words of faults.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import ErrorDetails, PydanticCustomError

from firestore_outbox.messages import faults
from firestore_outbox.messages.address import is_address
from firestore_outbox.messages.ids import is_account_id, is_request_id
from firestore_outbox.messages.limits import is_ciphertext, is_key_version, is_media_id, is_media_type

_LONGEST_VALUE = 60
"""Characters of a wrong value that a sentence quotes."""
_FAULT = "fault"
_TYPES = {"parts": faults.PART_TYPE, "schedule": "must be once, cron or rrule"}
_TAGS = {"parts": 2, "schedule": 1}
"""Where the tag of a union stands in a location; it is no field."""
LIST_FORM, MAP_FORM = "<list>", "<map>"
"""Tags of a field that may be a list or a map. They stand in locations, too, and are no fields."""


def fault(clause: str) -> PydanticCustomError:
    """To raise in a validator."""
    return PydanticCustomError(_FAULT, "{clause}", {"clause": clause})


def _must(be: Callable[[str], bool], clause: str) -> AfterValidator:
    def check(text: str) -> str:
        if not be(text):
            raise fault(clause)
        return text

    return AfterValidator(check)


def _checked_key_version(value: object) -> object:
    if not is_key_version(value):
        raise fault(faults.KEY_VERSION)
    return value


def is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


RequestId = Annotated[str, _must(is_request_id, faults.REQUEST_ID)]
AccountId = Annotated[str, _must(is_account_id, faults.ACCOUNT_ID)]
Address = Annotated[str, _must(is_address, faults.ADDRESS)]
MediaId = Annotated[str, _must(is_media_id, faults.MEDIA_ID)]
MediaType = Annotated[str, _must(is_media_type, faults.MEDIA_TYPE)]
KeyVersion = Annotated[int, BeforeValidator(_checked_key_version)]
Ciphertext = Annotated[str, _must(is_ciphertext, faults.CIPHERTEXT)]
TimeZone = Annotated[str, _must(is_time_zone, faults.NO_TIME_ZONE)]


def sentence_of(found: ErrorDetails) -> str:
    """Without a full stop."""
    where, value, context = _path(found["loc"]), found["input"], found.get("ctx", {})
    match found["type"]:
        case "fault":
            return f"{where} {context['clause']}"
        case "missing":
            return f"{where} {faults.MISSING}"
        case "extra_forbidden":
            return f"{where} {faults.UNKNOWN}"
        case "string_type":
            return f"{where} {faults.NO_TEXT}"
        case "string_too_long":
            return f"{where} {faults.too_long(len(value), context['max_length'])}"
        case "string_too_short":
            return f"{where} {faults.TOO_SHORT if value else faults.EMPTY}"
        case "list_type" | "too_short" | "too_long" if where == "parts":
            return f"{where} {faults.PARTS}"
        case "tuple_type":
            return f"{where} {faults.NO_LIST_OF_TEXTS}"
        case "list_type":
            return f"{where} {faults.NO_LIST}"
        case "too_short":
            return f"{where} {faults.EMPTY}"
        case "too_long":
            return f"{where} {faults.too_many(len(value), context['max_length'])}"
        case "union_tag_invalid" if where.startswith("parts") and context["tag"] == "sealed":
            return f"{where} {faults.SEALED_IN_A_RUN}"
        case "union_tag_invalid" | "union_tag_not_found" | "model_attributes_type" if found["loc"][0] in _TYPES:
            return f"{where}.type {_TYPES[str(found['loc'][0])]}"
        case "timezone_aware" | "datetime_type":
            return f"{where} {faults.NO_TIME}"
        case "enum":
            return f"{where} must be {context['expected']}"
        case "value_error":
            return f"{where}: {context['error']}"
        case _:
            return f"{where} is {shown(value)}: {_lower(found['msg'])}"


def shown(value: Any) -> str:
    """A wrong value, short enough for a sentence."""
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…")
    if value is None or isinstance(value, bool | int | float):
        text = repr(value)
        return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
    return f"a {type(value).__name__}"


def _path(location: tuple[int | str, ...]) -> str:
    """`('parts', 0, 'text', 'text')` as `parts[0].text`."""
    tag = _TAGS.get(str(location[0])) if location else None
    steps = [step for place, step in enumerate(location) if place != tag and step not in (LIST_FORM, MAP_FORM)]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    return path or "The document"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
