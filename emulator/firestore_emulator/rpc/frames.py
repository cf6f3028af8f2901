"""HTTP/2 on the wire: the numbers of its protocol, and frames and header blocks as bytes.

Encoding needs no table: every header block we send is constant, except for an error's text. Decoding is the `hpack`
library's, and costs more than all else that a small call needs; but a client repeats itself, and a block that refers
to a table that has not changed since means what it meant before.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from hpack import Decoder

from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 0x4, 0x5, 0x6
NO_ERROR, PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR = 0x0, 0x1, 0x6, 0x9

FRAME_HEADER = Struct(">HBBBI")
"""Upper and lower part of the payload's length, kind, flags, stream."""
MESSAGE_HEADER = Struct(">BI")
"""gRPC's own, before each message: whether it is compressed, and its length."""

MAX_HEADER_BYTES = 256 * 1024
REMEMBERED_BLOCKS = 256


class Broken(Exception):
    """The peer broke the protocol; the connection ends with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    size = len(payload)
    return FRAME_HEADER.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def message(data: bytes) -> bytes:
    return MESSAGE_HEADER.pack(0, len(data)) + data


def unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Broken(PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]


# --- header blocks that we send


def _literal(name: bytes, value: bytes) -> bytes:
    """A header that no table keeps."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(number: int) -> bytes:
    """HPACK's integer with a prefix of seven bits."""
    if number < 127:
        return bytes([number])
    out = bytearray([127])
    number -= 127
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


_STATUS_200 = b"\x88"  # the eighth entry of HPACK's fixed table
RESPONSE_HEADERS = _STATUS_200 + _literal(b"content-type", b"application/grpc")
OK_TRAILERS = _literal(b"grpc-status", b"0")


def error_trailers(refusal: RpcError) -> bytes:
    text = "".join(chr(b) if 0x20 <= b <= 0x7E and b != 0x25 else f"%{b:02X}" for b in refusal.message.encode())
    # Clients limit the size of what they take as metadata.
    return _literal(b"grpc-status", str(refusal.code.value[0]).encode()) + _literal(
        b"grpc-message", text[:4000].encode()
    )


# --- header blocks that we read


class RequestHeaders(NamedTuple):
    path: str
    call: Call


class HeaderReader:
    """One connection's decoder."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BYTES)
        self._remembered: dict[bytes, RequestHeaders] = {}

    def read(self, block: bytes) -> RequestHeaders:
        """Each block of the connection, in order: the table must stay in step."""
        known = self._remembered.get(block)
        if known is not None:
            return known
        table = self._decoder.header_table
        size_before, first_before = table.maxsize, self._first_entry()
        headers = self._decoder.decode(block, raw=True)
        metadata = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        found = RequestHeaders(metadata.get(":path", ""), Call(metadata))
        # Whatever changes the table puts a new entry in front, or changes how large it may be.
        if table.maxsize != size_before or self._first_entry() is not first_before:
            self._remembered.clear()
        else:
            if len(self._remembered) >= REMEMBERED_BLOCKS:
                self._remembered.clear()  # what is still in use comes again
            self._remembered[block] = found
        return found

    def _first_entry(self) -> object:
        entries = self._decoder.header_table.dynamic_entries
        return entries[0] if entries else None
