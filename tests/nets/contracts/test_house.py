"""The report of sizes has a row for each thing that it measures."""

from tests.nets import house


def test_the_table_has_its_rows() -> None:
    lines = list(house.table())
    assert lines[0] == "| what | now | held to |"
    assert len(lines) > 20
    assert {line.count("|") for line in lines} == {4}
