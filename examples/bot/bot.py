"""A bot that answers what people write, once for each burst of messages."""

from __future__ import annotations

from firestore_outbox import Context, conversation


@conversation(quiet=1, at_most=5)
async def answer(context: Context) -> None:
    written = [message.text for message in await context.messages() if message.text]
    if not written:
        return
    if any(text.strip().lower() == "hours" for text in written):
        await context.reply("We are open from 9:00 to 17:00.")
    else:
        await context.reply(f"You wrote {len(written)} message{'s' if len(written) > 1 else ''}. Ask for our HOURS.")
