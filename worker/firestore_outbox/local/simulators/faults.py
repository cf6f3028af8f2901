"""What may be ordered at `PUT /_sim/faults`. Everything is optional, rates are from 0 to 1, and `{}` resets.

Of one call, in this order: throttled, refused with an error, or accepted; an accepted one may be delivered twice, and
its answer may be an error, cut off, or never come. What concerns receipts is drawn for each message.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]

ErrorName = Literal[
    "overloaded",
    "internal",
    "rejected",
    "recipient_invalid",
    "media_missing",
    "window_closed",
    "invalid_message",
    "unauthorized",
    "account_blocked",
    "session_down",
    "throttled",
]


class BadFaults(ValueError):
    """An order that makes no sense, in words."""


class Faults(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    latencyMs: Milliseconds = 0
    """Between accepting and answering."""
    latencyJitterMs: Milliseconds = 0
    """Up to so much more, uniformly."""
    throttleRate: Rate = 0.0
    throttleScope: Literal["recipient", "account", "app"] = "account"
    retryAfterSeconds: Annotated[int, Field(ge=0, le=86_400)] | None = 1
    """Said with each throttle; null says nothing."""
    errorRate: Rate = 0.0
    """Not accepted."""
    errorCode: ErrorName = "overloaded"
    apiCode: _Text | None = None
    """In place of errorCode: a code of the API's own, for the APIs that have them."""
    acceptedErrorRate: Rate = 0.0
    """Accepted, and answered as an internal error."""
    lostResponseRate: Rate = 0.0
    """Accepted, and the connection is cut in place of an answer."""
    hangRate: Rate = 0.0
    """Accepted, and never answered."""
    deliverTwiceRate: Rate = 0.0
    """Called once, delivered twice."""
    invalidRecipients: tuple[_Text, ...] = Field(default=(), strict=False)
    """Refused for good, each time."""
    windowClosed: bool = False
    """WhatsApp Cloud: the recipients have not written for a day, so everything but templates is refused."""
    receiptDelayMs: Milliseconds = 0
    """From the acceptance to the first receipt. With receiptShuffle: at most, for each receipt on its own."""
    receiptDuplicateRate: Rate = 0.0
    receiptShuffle: bool = False
    """In any order, instead of sent, delivered, read, each when the one before was taken."""
    receiptLossRate: Rate = 0.0
    """The receipt never comes."""
    receiptFailedRate: Rate = 0.0
    """Accepted, and a receipt says later that it failed."""
    receiptFailedApiCode: _Text | None = None
    """What it says then: a code of the API's own."""
    uploadErrorRate: Rate = 0.0
    """A file is refused, with errorCode or apiCode."""
    uploadLostRate: Rate = 0.0
    """A file is taken, and the connection is cut in place of an answer."""
    uploadMs: Milliseconds = 0
    """So much longer than a message a file takes."""
    handleSeconds: Annotated[int, Field(ge=1)] | None = None
    """How long the handle of a file is good, as its answer says; null: for ever."""
    handleLostRate: Rate = 0.0
    """A handle is forgotten for good when it is used."""
    accounts: tuple[_Text, ...] | None = Field(default=None, strict=False)
    """Only these; null means all."""
    forCalls: Annotated[int, Field(ge=1)] | None = None
    """Only this number of calls from now on; then as if reset."""

    def concern(self, account_id: str) -> bool:
        return self.accounts is None or account_id in self.accounts


NO_FAULTS = Faults()


def parse_faults(raw: Any) -> Faults:
    try:
        return Faults.model_validate(raw)
    except ValidationError as error:
        raise BadFaults("; ".join(_words(fault) for fault in error.errors(include_url=False))) from None


def _words(fault: Any) -> str:
    where = ".".join(map(str, fault["loc"])) or "the body"
    if fault["type"] == "extra_forbidden":
        return f"{where} is no fault; known are {', '.join(Faults.model_fields)}"
    if fault["type"] == "model_type":
        return "the body must be a JSON object"
    message = fault["msg"]
    return f"{where} is {fault['input']!r}: {message[:1].lower()}{message[1:]}"
