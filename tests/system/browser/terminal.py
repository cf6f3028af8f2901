"""What a command prints on a terminal, as a picture of it in HTML."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

COLUMNS, ROWS = 118, 40
_STYLE = (
    "margin: 0; display: inline-block; padding: 14px 18px; border-radius: 8px; background: #16181c; color: #e6e8ec;"
    " font: 13px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; white-space: pre-wrap; overflow-wrap: anywhere;"
    f" width: {COLUMNS + 5}ch"
)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UP = re.compile(r"\x1b\[(\d*)A")


async def printed(words: list[str], environment: dict[str, str], until: Callable[[str], bool]) -> str:
    """What `outbox` with these words prints to a terminal of this size, until it is enough or the command ends."""
    terminal, inner = pty.openpty()
    ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("outbox")),
        *words,
        env={**os.environ, **environment, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)},
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    os.close(inner)
    raw = ""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not until(raw):
                raw += (await asyncio.to_thread(os.read, terminal, 65536)).decode(errors="replace")
    except OSError:  # the command has ended, and with it the terminal
        pass
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
        # What is still printed must be read, or the command waits for that.
        drain = asyncio.create_task(asyncio.to_thread(_drain, terminal))
        await process.wait()
        await drain
        os.close(terminal)
    return screen(raw)


def _drain(terminal: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


def screen(raw: str) -> str:
    """The lines that stay: a carriage return begins the line again, and moving up rewrites the ones above."""
    lines = [""]
    for part in re.split(r"(\r?\n|\r|\x1b\[\d*A|\x1b\[2K)", raw):
        if part.endswith("\n"):
            lines.append("")
        elif up := _UP.fullmatch(part):
            count = int(up[1] or 1)
            lines = lines[:-count] or [""]
        elif part in ("\r", "\x1b[2K"):
            lines[-1] = ""
        else:
            lines[-1] += _ESCAPE.sub("", part)
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def picture(command: str, output: str) -> str:
    typed = f'<span style="color: #8fd0a8">$ {html.escape(command)}</span>'
    return f'<body style="margin: 0"><pre style="{_STYLE}">{typed}\n{html.escape(output)}</pre></body>'
