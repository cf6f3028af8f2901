"""A `multipart/form-data` body with one file in it, read. Little of RFC 7578: what uploads to providers consist of."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import HTTP


class BadForm(ValueError):
    """What is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFile:
    filename: str
    mime_type: str
    content: bytes


def read_form(content_type: str, body: bytes) -> tuple[dict[str, str], FormFile]:
    """The fields by name, and the file in the field `file`."""
    header = EmailMessage(policy=HTTP)
    header["Content-Type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or not boundary:
        raise BadForm("The body must be multipart/form-data with a boundary.")
    fields: dict[str, str] = {}
    file: FormFile | None = None
    for section in (b"\r\n" + body).split(b"\r\n--" + boundary.encode())[1:]:
        if section.startswith(b"--"):
            break
        head, blank, content = section.partition(b"\r\n\r\n")
        part = BytesHeaderParser(policy=HTTP).parsebytes(head.lstrip(b"\r\n") + b"\r\n\r\n")
        name = part.get_param("name", header="content-disposition")
        if not blank or not isinstance(name, str):
            raise BadForm("A part of the form has no name.")
        if name == "file":
            filename = part.get_filename()
            file = FormFile(filename=filename or "", mime_type=part.get_content_type(), content=content)
        else:
            fields[name] = content.decode(errors="replace")
    if file is None:
        raise BadForm("The parameter file is required.")
    return fields, file
