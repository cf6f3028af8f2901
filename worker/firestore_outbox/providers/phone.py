"""A phone number in its international form, split into country code and the rest.

The form is E.164: a plus sign, the country code, the number within the country, at most 15 digits in all. Country codes
are assigned by the ITU so that none begins another, so a number has one country code or none that we know, and no list
of number plans is needed.

The plus sign is required. Without it one cannot tell a number with its country code from one without: 98 is Iran, and a
great many Indian numbers begin with 98.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The geographic codes, and the networks that have telephones. Not the codes of services (freephone, shared cost,
# premium rate): no person reads messages there.
_ASSIGNED = """
    1
    20 211 212 213 216 218 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 238 239
    240 241 242 243 244 245 246 247 248 249 250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 268 269
    27 290 291 297 298 299
    30 31 32 33 34 350 351 352 353 354 355 356 357 358 359 36 370 371 372 373 374 375 376 377 378 379
    380 381 382 383 385 386 387 389 39
    40 41 420 421 423 43 44 45 46 47 48 49
    500 501 502 503 504 505 506 507 508 509 51 52 53 54 55 56 57 58 590 591 592 593 594 595 596 597 598 599
    60 61 62 63 64 65 66 670 672 673 674 675 676 677 678 679 680 681 682 683 685 686 687 688 689 690 691 692
    7
    81 82 84 850 852 853 855 856 86 870 880 881 882 883 886
    90 91 92 93 94 95 960 961 962 963 964 965 966 967 968 970 971 972 973 974 975 976 977
    98 992 993 994 995 996 998
    """
COUNTRY_CODES = frozenset(_ASSIGNED.split())
LONGEST_CODE = 3

_SEPARATORS = re.compile(r"[ ().-]")
_FORM = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)


def international(text: str) -> str | None:
    """The plus sign and the digits; blanks, dots, hyphens and brackets are passed over. None for anything else."""
    bare = _SEPARATORS.sub("", text)
    return bare if _FORM.fullmatch(bare) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneNumber:
    country_code: str
    """With its plus sign: "+91"."""
    national: str
    """The rest, digits only."""

    def __str__(self) -> str:
        return self.country_code + self.national

    @classmethod
    def parse(cls, text: str) -> PhoneNumber | None:
        """None for what is no international number, or has a country code that does not exist."""
        digits = (international(text) or "").removeprefix("+")
        for length in range(LONGEST_CODE, 0, -1):
            if digits[:length] in COUNTRY_CODES:
                return cls(country_code=f"+{digits[:length]}", national=digits[length:])
        return None
