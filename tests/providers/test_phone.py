"""International phone numbers, split at the country code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.providers.phone import COUNTRY_CODES, LONGEST_CODE, PhoneNumber, international


@pytest.mark.parametrize(
    ("text", "country_code", "national"),
    [
        ("+919999999999", "+91", "9999999999"),
        ("+91 9999999999", "+91", "9999999999"),
        ("+1 (650) 555-1234", "+1", "6505551234"),
        ("+12465551234", "+1", "2465551234"),  # Barbados: the North American plan has one code for all
        ("+77012345678", "+7", "7012345678"),  # Kazakhstan shares Russia's
        ("+4915112345678", "+49", "15112345678"),
        ("+351912345678", "+351", "912345678"),
        ("+3901234567", "+39", "01234567"),  # a leading zero belongs to the number in Italy
        ("+971501234567", "+971", "501234567"),
        ("+8801712345678", "+880", "1712345678"),
        ("+81312345678", "+81", "312345678"),
        ("+9989012345678", "+998", "9012345678"),
        ("+983812345678", "+98", "3812345678"),
        ("+2348012345678", "+234", "8012345678"),
        ("+201001234567", "+20", "1001234567"),
        ("+247123456", "+247", "123456"),
        ("+5511987654321", "+55", "11987654321"),
        ("+59899123456", "+598", "99123456"),
        ("+6851234567", "+685", "1234567"),
        ("+881612345678", "+881", "612345678"),
    ],
)
def test_a_number_is_split_after_its_country_code(text: str, country_code: str, national: str) -> None:
    assert PhoneNumber.parse(text) == PhoneNumber(country_code=country_code, national=national)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "9999999999",  # without its plus sign it could be anybody's
        "919999999999",
        "00919999999999",
        "+091999999999",
        "+91999x999999",
        "+9999999999",  # 999 is no country's
        "+2101234567",
        "+8881234567",
        "+123456",  # too short
        "+1234567890123456",  # too long
        "+٩١٩٩٩٩٩٩٩٩٩٩",
        "+919999999999\n",
        "120363040000000000@g.us",
        "++919999999999",
    ],
)
def test_what_is_no_international_number_is_refused(text: str) -> None:
    assert PhoneNumber.parse(text) is None


def test_no_country_code_begins_another_so_that_a_number_has_one_at_most() -> None:
    assert all(1 <= len(code) <= LONGEST_CODE for code in COUNTRY_CODES)
    assert [(a, b) for a in COUNTRY_CODES for b in COUNTRY_CODES if a != b and b.startswith(a)] == []


def test_the_table_is_the_list_of_assigned_codes_told_a_second_time_by_ranges() -> None:
    two = {1, 7, 20, 27, *range(30, 35), 36, 39, 40, 41, *range(43, 50), *range(51, 59), *range(60, 67), 81, 82, 84, 86}
    two |= {*range(90, 96), 98}
    africa = {211, 212, 213, 216, 218, *range(220, 259), *range(260, 270), 290, 291, 297, 298, 299}
    europe = {*range(350, 360), *range(370, 384), 385, 386, 387, 389, 420, 421, 423}
    america = {*range(500, 510), *range(590, 600)}
    oceania = {670, *range(672, 684), *range(685, 693)}
    asia = {850, 852, 853, 855, 856, 880, 886, *range(960, 969), *range(970, 978), *range(992, 997), 998}
    networks = {870, 881, 882, 883}
    assert {int(code) for code in COUNTRY_CODES} == two | africa | europe | america | oceania | asia | networks


@given(st.sampled_from(sorted(COUNTRY_CODES)), st.from_regex(r"[0-9]{7,12}", fullmatch=True))
def test_the_two_halves_together_are_the_number(code: str, national: str) -> None:
    number = PhoneNumber.parse(f"+{code}{national}")
    assert number == PhoneNumber(country_code=f"+{code}", national=national)
    assert str(number) == f"+{code}{national}"


@given(st.text())
def test_no_text_whatever_makes_it_raise(text: str) -> None:
    number = PhoneNumber.parse(text)
    assert number is None or str(number) == international(text)
