"""Faults of a file: all of them in one error, each once, and none that only follows from another."""

from datetime import timedelta
from typing import Any

import pytest

from common.errors import InvalidInput
from common.files.document import MOST_FAULTS, Document, parse_document
from common.identifiers import check_dns_label


def read(value: object) -> tuple[int, int]:
    def size(document: Document) -> tuple[int, int]:
        least, most = (document.integer(name, minimum=1, maximum=9) for name in ("least", "most"))
        if document.is_sound() and least > most:
            document.fault("most", f"is {most}, less than least, which is {least}")
        document.refuse_unknown()
        return least, most

    def file(document: Document) -> tuple[int, int]:
        document.text("name", check=check_dns_label)
        found = size(document.document("size"))
        document.each("parts", lambda part: part.duration("hold", default=timedelta(0)))
        document.refuse_unknown()
        return found

    return parse_document(value, "the file", file)


def refused(value: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as refusal:
        read(value)
    return refusal.value


FILE: dict[str, Any] = {"name": "a", "size": {"least": 1, "most": 2}, "parts": []}


def test_a_right_file_is_read() -> None:
    assert read(FILE) == (1, 2)


def test_one_fault_is_its_sentence() -> None:
    error = refused({**FILE, "name": "A"})
    assert (error.field, error.details) == ("name", ())
    assert error.message.startswith("name is 'A'; expected a DNS label")


def test_faults_are_named_in_the_order_of_reading() -> None:
    error = refused({"name": "A", "size": {"least": 0, "most": "x"}, "parts": [{"hold": "soon"}, 7, {"hold": 1}]})
    assert error.field == "name"
    assert error.message.startswith("the file has 6 faults; the first: name is 'A'; expected a DNS label")
    assert [line.split(" ")[0].rstrip(":") for line in error.details] == [
        "name",
        "size.least",
        "size.most",
        "parts[0].hold",
        "parts[1]",
        "parts[2].hold",
    ]
    assert len(error.further) == 5


def test_rules_about_several_fields_wait_for_right_fields() -> None:
    assert refused({**FILE, "size": {"least": 3, "most": 2}}).message == "size.most is 2, less than least, which is 3"
    assert (
        refused({**FILE, "size": {"least": 3, "most": 0}}).message
        == "size.most is 0; expected a whole number from 1 to 9"
    )


def test_nothing_is_reported_of_the_inside_of_a_wrong_part() -> None:
    assert refused({**FILE, "size": []}).message == "size is a list; expected an object with named fields"
    assert refused({"name": "a", "parts": []}).message == "size is missing"


def test_each_unknown_field_is_reported_with_what_was_meant() -> None:
    error = refused({**FILE, "size": {"least": 1, "most": 2, "mots": 3, "zzz": 4}})
    assert error.details == (
        "size.mots is not a field that Fairlead can honour here; it knows least, most; did you mean most?",
        "size.zzz is not a field that Fairlead can honour here; it knows least, most",
    )


def test_very_many_faults_are_counted() -> None:
    error = refused({**FILE, **{f"zz{number}": 1 for number in range(50)}})
    assert error.message.startswith("the file has 50 faults; ")
    assert len(error.details) == MOST_FAULTS + 1
    assert error.details[-1] == "and 30 more"


def test_a_document_of_its_own_raises_the_first_fault() -> None:
    document = Document({"name": "A"})
    with pytest.raises(InvalidInput, match="name is 'A'"):
        document.text("name", check=check_dns_label)
    with pytest.raises(InvalidInput, match="size is missing"):
        document.document("size")
