"""Bounded row counts for pages: an exact count of a large table takes time in proportion to its size."""

from typing import Any

from django.db.models import IntegerField, QuerySet, Subquery

MOST = 1000
"""Limit of counting; pages show only that there are more."""


def count_up_to(rows: QuerySet[Any], most: int = MOST) -> int:
    """Return the number of rows, and `most` + 1 for any larger number."""
    return rows.order_by()[: most + 1].count()


class CountUpTo(Subquery):
    """Number of related rows of a row, for `annotate`, bounded as in `count_up_to`.

    Args:
        rows: the related ones, tied to the row by `OuterRef`.
    """

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted_up_to)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any], most: int = MOST) -> None:
        super().__init__(rows.order_by().values("pk")[: most + 1])


def counted(number: int, most: int = MOST) -> str:
    """Return a number from `count_up_to`, or a sum of such, formatted: `1,000+` for more than `most`. Pure."""
    return f"{most:,}+" if number > most else f"{number:,}"
