"""Commands with which an operator corrects what became of messages: cancel, settle, redrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from firestore_outbox.cli.ids import RequestId, document_id, no_message
from firestore_outbox.cli.output import Json, Yes, confirm, console, fail, progress, show_json
from firestore_outbox.cli.system import existing_account, with_system

if TYPE_CHECKING:
    from firestore_outbox.operations.redrive import NotRedriven, Redriven
    from firestore_outbox.operations.settle import Settled
    from firestore_outbox.wiring import System

MOST_REASONS = 10


def register(app: typer.Typer) -> None:
    app.command()(cancel)
    app.command()(settle)
    app.command()(redrive)


def cancel(request_id: RequestId, as_json: Json = False) -> None:
    """Cancel a message that has not been sent. A message that is being sent is sent."""

    async def work(system: System) -> str:
        state = await system.cancel(request_id)
        if state is None:
            fail(no_message(request_id))
        return state

    state = with_system(work)
    if as_json:
        show_json({"requestId": request_id, "status": state})
    if state != "cancelled":
        fail(f"{request_id} cannot be cancelled any more: it is {state}; see: outbox status {request_id}")
    if not as_json:
        console.print(f"{request_id}  cancelled")


def settle(
    request_id: RequestId,
    settled_as: Annotated[Literal["sent", "failed"], typer.Option("--as", help="What you found out.")],
    as_json: Json = False,
) -> None:
    """Settle an uncertain message: it was sent, or it failed. To send it again, use redrive."""

    async def work(system: System) -> Settled:
        from firestore_outbox.operations.settle import NotSettled, SettledAs

        result = await system.settle(request_id, SettledAs(settled_as))
        if isinstance(result, NotSettled):
            fail(f"{result.sentence.rstrip('.')}; `outbox list --status uncertain` shows what waits for you")
        return result

    settled = with_system(work)
    if as_json:
        show_json({"requestId": settled.request_id, "status": settled.status.value})
    else:
        console.print(f"{settled.request_id}  {settled.status.value}")


def redrive(
    request_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One message.", callback=document_id)] = None,
    account: Annotated[
        str | None, typer.Option(help="All failed messages of an account.", callback=document_id)
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Put failed messages, or an uncertain one, back into the queue, with all attempts available again."""
    if (request_id is None) == (account is None):
        raise typer.BadParameter("give the ID of one message, or --account for all failed ones of an account")

    async def work(system: System) -> list[Redriven | NotRedriven]:
        from firestore_outbox.messages.states import OutboxStatus

        if request_id is not None:
            return [await system.redrive.one(request_id)]
        await existing_account(system, str(account))
        count = await system.messages.count_in_status(str(account), OutboxStatus.FAILED)
        if count > 1:
            confirm(f"{count:,} failed messages of {account} go back into the queue and are sent again", yes=yes)
        done: list[Redriven | NotRedriven] = []
        with progress("put back", shown=not as_json) as advance:
            async for results in system.redrive.failed_of(str(account)):
                advance(len(results))
                done += results
        return done

    results = with_system(work)
    _show_redriven(results, account, as_json)


def _show_redriven(results: list[Redriven | NotRedriven], account: str | None, as_json: bool) -> None:
    from firestore_outbox.operations.redrive import NotRedriven, Redriven

    redriven = [result.request_id for result in results if isinstance(result, Redriven)]
    left = [result for result in results if isinstance(result, NotRedriven)]
    if as_json:
        reasons = [{"requestId": result.request_id, "reason": result.sentence} for result in left]
        show_json({"redriven": redriven, "left": reasons})
    elif redriven:
        console.print(f"{len(redriven)} back in the queue" + (f", {len(left)} left as they are" if left else ""))
    if not redriven:
        if left:
            why = f"{left[0].request_id}: {left[0].sentence}"
            fail(f"nothing to redrive: {why}; `outbox list --status failed` shows what can be")
        fail(f"nothing to redrive: no message of {account} has failed")
    if left and not as_json:
        for result in left[:MOST_REASONS]:
            console.print(f"{result.request_id}: {result.sentence}", soft_wrap=True)
        if len(left) > MOST_REASONS:
            console.print(f"… and {len(left) - MOST_REASONS} more; --json lists each")
