"""What the console calls things that documents name with a code: causes of failure, actions, settings, kinds of work.

A code without words is shown as it is: a handler's own, or one that a later version wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from firestore_outbox.lane import ref as kinds
from firestore_outbox.providers.outcome import ErrorCode

LONGEST_PREVIEW = 120
"""Characters of a message in a list."""

CAUSES: Mapping[str, str] = {
    ErrorCode.PROVIDER_TIMEOUT: "The provider did not answer in time",
    ErrorCode.PROVIDER_UNAVAILABLE: "The provider is unavailable",
    ErrorCode.RATE_LIMITED: "The provider asked for a pause",
    ErrorCode.RECIPIENT_INVALID: "The address cannot be reached",
    ErrorCode.REJECTED: "The provider rejected it",
    ErrorCode.AUTH: "The provider refuses the credentials",
    ErrorCode.NOT_CONNECTED: "The phone is not connected",
    ErrorCode.WINDOW_CLOSED: "24 hours have passed since the recipient wrote",
    ErrorCode.DEADLINE_PASSED: "Its time to be sent has passed",
    ErrorCode.MAX_ATTEMPTS: "Every attempt failed",
    ErrorCode.INVALID_MESSAGE: "The message is not valid",
    ErrorCode.MEDIA_MISSING: "Its file is missing",
    ErrorCode.OUTCOME_UNKNOWN: "The provider's answer was lost",
    ErrorCode.OPTED_OUT: "The recipient has opted out",
    ErrorCode.FREQUENCY_CAPPED: "The recipient had enough messages lately",
    ErrorCode.NEW_CONTACT_CAPPED: "The day has no room for another new contact",
    ErrorCode.OUTSIDE_HOURS: "Outside the recipient's hours",
    ErrorCode.CANNOT_OPEN: "The sealed message cannot be opened",
    ErrorCode.QUOTA_EXCEEDED: "The plan's quota is used up",
}

ACTIONS: Mapping[str, str] = {
    "message.cancel": "Cancelled a message",
    "message.settle": "Settled an uncertain message",
    "message.redrive": "Sent a failed message again",
    "account.redrive": "Sent all failed messages again",
    "account.pause": "Paused the account",
    "account.resume": "Resumed the account",
    "account.check": "Checked the secrets",
    "set": "Changed settings",
    "member": "Changed a member",
    "connect": "Began to link a phone",
    "disconnect": "Unlinked the phone",
    "run.pause": "Paused a run",
    "run.resume": "Resumed a run",
    "run.cancel": "Cancelled a run",
    "run.retry": "Tried failed targets again",
    "reminder.pause": "Paused a reminder",
    "reminder.resume": "Resumed a reminder",
    "reminder.add": "Added a reminder",
    "reminder.edit": "Edited a reminder",
    "reminder.remove": "Removed a reminder",
    "dev.faults": "Ordered faults",
    "dev.say": "Wrote as a phone",
    "job.retry": "Retried a dead letter",
    "job.drop": "Dropped a dead letter",
    "audit.run": "Ran the audit",
}

SETTINGS: Mapping[str, str] = {
    "provider": "Provider",
    "providerNumber": "Number at the provider",
    "status": "Status",
    "pausedUntil": "Paused until",
    "timezone": "Time zone",
    "pace.perMinute": "Messages a minute",
    "pace.burst": "Messages at once",
    "pace.perRecipientSeconds": "Seconds between messages to one recipient",
    "concurrency": "Calls to the provider at once",
    "onUncertain": "If the outcome is unknown",
    "window.startHour": "Sends from, hour",
    "window.endHour": "Sends until, hour",
    "recipientHours.startHour": "Recipients' hours from",
    "recipientHours.endHour": "Recipients' hours until",
    "frequencyCap.messages": "Marketing messages to one recipient",
    "frequencyCap.days": "Days in which they count",
    "dailyCap": "Messages a day",
    "warmUp.startPerDay": "Warm-up: messages on the first day",
    "warmUp.factor": "Warm-up: each day as many times the day before",
    "warmUp.untilPerDay": "Warm-up: until a day allows",
    "warmUp.since": "Warm-up: first day",
    "newContactsPerDay": "New contacts a day",
    "tier": "Recipients in 24 hours by the provider's tier",
    "pauseRunsAt.percent": "A run pauses itself at this share of refusals",
    "pauseRunsAt.outcomes": "Outcomes that are looked at for it",
    "fallbackTemplate.name": "Template after 24 hours",
    "fallbackTemplate.language": "Language of the template",
    "fallbackTemplate.params": "Values of the template",
    "notify.webhook": "Address for notifications",
    "optOut.off": "Opt-out words are off",
    "optOut.languages": "Languages of opt-out words",
    "optOut.words": "Further opt-out words",
    "retentionDays": "Days until messages are deleted",
    "plan": "Plan",
}
KINDS: Mapping[str, str] = {
    kinds.OUTBOX: "messages of",
    kinds.INBOUND: "replies of",
    kinds.REMINDER: "reminder",
    kinds.RUN: "run",
    kinds.SESSION: "phone session of",
    kinds.FETCH: "files for",
    kinds.NOTIFY: "notifications of",
}
"""What a lane does, before its key."""

PROVIDERS: Mapping[str, str] = {
    "whatsapp_cloud": "WhatsApp Cloud",
    "interakt": "Interakt",
    "waha": "WAHA",
    "webhook": "Webhook",
    "simulated": "Simulated provider",
}
_FILES = {"image": "Picture", "audio": "Voice or sound", "video": "Video"}
_CODE = re.compile(rf"\b({'|'.join(code for code in CAUSES if '_' in code)})\b")
"""Codes that are no words of English by chance, as `rejected` is."""
_COMMAND = re.compile(r": outbox [a-z].*$")
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC\b")


def on_a_page(sentence: str, zone: ZoneInfo, now: datetime) -> str:
    """A sentence that the command line prints, as a page shows it: times on the clock of the page, causes in words, and
    no command at its end, since the page has a button."""

    def time(found: re.Match[str]) -> str:
        return shown_time(datetime.fromisoformat(found[1]).replace(tzinfo=UTC), zone, now)

    def cause(found: re.Match[str]) -> str:
        words = CAUSES[found[0]]
        return words if found.start() == 0 else words[0].lower() + words[1:]

    return _COMMAND.sub(".", _CODE.sub(cause, _TIME.sub(time, sentence)))


def shown_time(at: datetime | None, zone: ZoneInfo, now: datetime) -> str:
    """To the second, without the year if it is this one."""
    if at is None:
        return ""
    there = at.astimezone(zone)
    return f"{there:%d %b, %H:%M:%S}" if there.year == now.astimezone(zone).year else f"{there:%d %b %Y, %H:%M:%S}"


def preview(parts: object) -> str:
    """A message in one line; empty if the document has no parts that can be read."""
    for part in parts if isinstance(parts, list | tuple) else ():
        if not isinstance(part, Mapping):
            continue
        if isinstance(said := part.get("text") or part.get("caption"), str):
            line = " ".join(said.split())
            return line if len(line) <= LONGEST_PREVIEW else f"{line[: LONGEST_PREVIEW - 1]}…"
        match part.get("type"):
            case "media":
                return _FILES.get(str(part.get("mimeType")).partition("/")[0], "File")
            case "template":
                return f"Template {part.get('name')}"
            case "sealed":
                return "Sealed: only the account's key opens it"
    return ""
