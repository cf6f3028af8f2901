"""What `outbox accounts add` needs to know: from its options, from a file of secrets, or from questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from firestore_outbox.messages import faults
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.providers.credentials import Credentials, is_usable

if TYPE_CHECKING:
    from firestore_outbox.providers.protocol import Profile, Secret

STDIN = "-"


def secrets_from(source: str, profile: Profile) -> dict[str, str]:
    try:
        text = sys.stdin.read() if source == STDIN else Path(source).read_text(encoding="utf-8")
        given: Any = json.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"the file cannot be read ({type(error).__name__})", param_hint="--secrets") from None
    except (ValueError, RecursionError):  # the parser's own words would quote it
        raise typer.BadParameter("the content is not JSON", param_hint="--secrets") from None
    if not isinstance(given, dict) or not all(is_usable(value) for value in given.values()):
        raise typer.BadParameter("the content must be a JSON object of printable ASCII strings", param_hint="--secrets")
    known = {secret.name for secret in profile.secrets}
    if unknown := sorted(set(given) - known):
        hint = f"it has {', '.join(unknown)}; this provider knows {', '.join(sorted(known)) or 'none'}"
        raise typer.BadParameter(hint, param_hint="--secrets")
    if missing := missing_in(profile, Credentials(given)):
        raise typer.BadParameter(f"it lacks {', '.join(missing)}", param_hint="--secrets")
    return {name: value for name, value in given.items() if value}


def missing_in(profile: Profile, credentials: Credentials) -> list[str]:
    return [secret.name for secret in profile.secrets if secret.required and not credentials.get(secret.name)]


class Answers:
    """The command's options, and questions to the user for what is missing."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks

    def account_id(self, given: str | None) -> str:
        while True:
            answer = given if given is not None else self._asked("Account id", None, "ACCOUNT")
            if is_account_id(answer):
                return answer
            if given is not None:
                raise typer.BadParameter(f"accountId {faults.ACCOUNT_ID}", param_hint="ACCOUNT")
            typer.echo(f"accountId {faults.ACCOUNT_ID}.", err=True)

    def provider(self, given: str | None, names: tuple[str, ...]) -> str:
        while True:
            answer = given if given is not None else self._asked(f"Provider ({', '.join(names)})", None, "--provider")
            if answer in names:
                return answer
            sentence = f"it must be one of {', '.join(names)}"
            if given is not None:
                raise typer.BadParameter(sentence, param_hint="--provider")
            typer.echo(f"There is no provider {answer!r}: {sentence}.", err=True)

    def per_minute(self, given: float | None) -> float:
        from firestore_outbox.accounts.account import DEFAULT_PER_MINUTE

        if given is not None or not self._asks:
            return DEFAULT_PER_MINUTE if given is None else given
        answer: float = typer.prompt(
            "Messages a minute (0 for no pace)", default=DEFAULT_PER_MINUTE, type=float, err=True
        )
        return answer

    def text(self, given: str | None, question: str, *, default: str) -> str:
        if given is not None or not self._asks:
            return default if given is None else given
        return self._asked(question, default, "")

    def owner(self, given: str | None) -> str:
        answer = self.text(given, "The owner's uid (empty for none)", default="")
        if len(answer) > 128 or "/" in answer:
            raise typer.BadParameter("a uid has at most 128 characters, and no '/'", param_hint="--owner")
        return answer

    def secrets(self, profile: Profile) -> dict[str, str]:
        answers = {secret.name: self._secret(secret) for secret in profile.secrets}
        return {name: answer for name, answer in answers.items() if answer}

    def _secret(self, secret: Secret) -> str:
        while True:
            answer: str = typer.prompt(
                f"{secret.name}: {secret.what}",
                default="" if not secret.required else None,
                show_default=False,
                hide_input=secret.hidden,
                err=True,
            )
            if is_usable(answer.strip()):
                return answer.strip()
            typer.echo("It has characters that an HTTP header cannot carry; copy it again.", err=True)

    def _asked(self, question: str, default: str | None, option: str) -> str:
        if not self._asks:
            raise typer.BadParameter("required, because --secrets turns questions off", param_hint=option)
        answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
        return answer.strip()
