"""Header blocks as our server reads them: whatever it remembers, it never reads them otherwise than HPACK says."""

from __future__ import annotations

from random import Random

import pytest
from hpack import Decoder, Encoder

from firestore_emulator.rpc.frames import REMEMBERED_BLOCKS, HeaderReader

BLOCKS = 400


def headers(chance: Random) -> list[tuple[str, str]]:
    """Few different ones, so that they repeat, and enough that small tables must let some go."""
    chosen = [(f"name-{chance.randrange(6)}", f"value-{chance.randrange(4)}") for _ in range(chance.randrange(1, 5))]
    return [(":path", f"/service/{chance.choice('abc')}"), *dict(chosen).items()]


@pytest.mark.parametrize("seed", range(20))
def test_blocks_are_read_as_a_decoder_without_a_memory_reads_them(seed: int) -> None:
    chance = Random(seed)
    encoder, plain, reader = Encoder(), Decoder(), HeaderReader()
    for _ in range(BLOCKS):
        if chance.random() < 0.02:
            encoder.header_table_size = chance.choice((0, 64, 128, 300, 4_096))
        keep = chance.random() < 0.3  # an entry that the table does not get is written out, as grpc does
        fields = [(name, value, not keep) for name, value in headers(chance)]
        block = encoder.encode(fields, huffman=chance.random() < 0.5)
        expected = {str(name): str(value) for name, value in plain.decode(block)}
        found = reader.read(block)
        assert dict(found.call.metadata) == expected
        assert found.path == expected[":path"]


def test_a_block_that_means_the_same_as_before_is_not_decoded_again() -> None:
    encoder, reader = Encoder(), HeaderReader()
    calls = [(":path", "/service/a"), ("authorization", "Bearer owner")]
    first, second, third = (encoder.encode(calls) for _ in range(3))
    assert second == third
    assert second != first, "the first puts into the table what the others refer to"
    reader.read(first)
    assert reader.read(second).call is reader.read(third).call


def test_the_memory_does_not_outlive_the_table_that_it_was_true_of() -> None:
    reader = HeaderReader()
    newest_entry = bytes([0x80 | 62])
    insert = Encoder()
    reader.read(insert.encode([("color", "red")], huffman=False))
    assert reader.read(newest_entry).call.metadata == {"color": "red"}
    reader.read(insert.encode([("color", "blue")], huffman=False))
    assert reader.read(newest_entry).call.metadata == {"color": "blue"}


def test_a_client_that_never_repeats_itself_does_not_fill_the_memory() -> None:
    reader = HeaderReader()
    for number in range(REMEMBERED_BLOCKS * 2):
        text = b"%06d" % number
        reader.read(b"\x00\x01n" + bytes([len(text)]) + text)  # a literal that no table keeps
    assert len(reader._remembered) <= REMEMBERED_BLOCKS
