"""The values of a template's placeholders: a list of texts for its body, or a map for its header, body and buttons.

["Ann", "Tuesday"]                                       the body's, in order
{header: ["Ann"], body: ["Tuesday"], buttons: ["a1"]}    texts for each
{header: {image: "https://…"}}                           a file in the header: image, video or document
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from firestore_outbox.messages import faults
from firestore_outbox.messages.checked_fields import LIST_FORM, MAP_FORM, fault
from firestore_outbox.messages.limits import MAX_PARAM, MAX_PARAMS, MAX_PARAMS_BYTES, bytes_of

_Value = Annotated[str, StringConstraints(max_length=MAX_PARAM)]
_Values = Annotated[tuple[_Value, ...], Field(strict=False, max_length=MAX_PARAMS, fail_fast=True)]


class _Map(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class HeaderFile(_Map):
    """A file in the template's header: exactly one of these. A value is an https link, or the provider's id of it."""

    image: _Value | None = None
    video: _Value | None = None
    document: _Value | None = None

    @model_validator(mode="after")
    def _is_one(self) -> HeaderFile:
        if len(self.given) != 1:
            raise fault(faults.HEADER_FILE)
        return self

    @property
    def given(self) -> list[tuple[str, str]]:
        """The kinds that are there, with their links or ids."""
        return [(kind, value) for kind, value in self if value is not None]


def _form(value: Any) -> str:
    return MAP_FORM if isinstance(value, Mapping | BaseModel) else LIST_FORM


class TemplateValues(_Map):
    header: (
        Annotated[
            Annotated[_Values, Tag(LIST_FORM)] | Annotated[HeaderFile, Tag(MAP_FORM)],
            Discriminator(_form),
        ]
        | None
    ) = None
    body: _Values | None = None
    buttons: _Values | None = None
    """Of the template's buttons with an address, by their place; an empty text for a button that has no placeholder."""


def texts_of(params: tuple[str, ...] | TemplateValues) -> Iterator[str]:
    """Every text in them."""
    if not isinstance(params, TemplateValues):
        yield from params
        return
    header = params.header
    yield from (value for _, value in header.given) if isinstance(header, HeaderFile) else header or ()
    yield from params.body or ()
    yield from params.buttons or ()


def _fit_together(params: tuple[str, ...] | TemplateValues) -> tuple[str, ...] | TemplateValues:
    texts = list(texts_of(params))
    if len(texts) > MAX_PARAMS:
        raise fault(faults.too_many(len(texts), MAX_PARAMS))
    size = sum(map(bytes_of, texts))
    if size > MAX_PARAMS_BYTES:
        raise fault(faults.too_many_bytes(size, MAX_PARAMS_BYTES))
    return params


Params = Annotated[
    Annotated[_Values, Tag(LIST_FORM)] | Annotated[TemplateValues, Tag(MAP_FORM)],
    Discriminator(_form),
    AfterValidator(_fit_together),
]
