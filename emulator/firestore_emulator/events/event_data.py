"""The message that a Firestore event carries: `google.events.cloud.firestore.v1.DocumentEventData`.

Google publishes it with a document type of its own, which has the same fields as that of the Firestore API. Here it is
put together from the latter, so that the emulator needs no further package: on the wire the two are the same.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, message_factory

from firestore_emulator.documents.protos import Document, DocumentMask, Proto

_FILE = "firestore_emulator/event_data.proto"
_PACKAGE = "firestore_emulator.events"


def _made() -> Proto:
    parts = (("value", 1, Document), ("old_value", 2, Document), ("update_mask", 3, DocumentMask))
    needed = {part.DESCRIPTOR.file.name for _, _, part in parts}
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3", dependency=sorted(needed))
    message = file.message_type.add(name="DocumentEventData")
    for name, number, part in parts:
        message.field.add(
            name=name,
            number=number,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
            type_name=f".{part.DESCRIPTOR.full_name}",
        )
    pool = Document.DESCRIPTOR.file.pool
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.DocumentEventData"))


DocumentEventData: Proto = _made()
