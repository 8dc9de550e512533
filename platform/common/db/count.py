"""How many rows there are, as far as a page says it: to count a large table exactly takes as long as it is large."""

from typing import Any

from django.db.models import IntegerField, QuerySet, Subquery

MOST = 1000
"""So many are counted; of more, pages say only that they are more."""


def count_up_to(rows: QuerySet[Any], most: int = MOST) -> int:
    """Return how many rows there are, and one more than `most` for any larger number."""
    return rows.order_by()[: most + 1].count()


class CountUpTo(Subquery):
    """How many related rows a row has, for `annotate`, counted as by `count_up_to`.

    Args:
        rows: the related ones, tied to the row by `OuterRef`.
    """

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted_up_to)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any], most: int = MOST) -> None:
        super().__init__(rows.order_by().values("pk")[: most + 1])


def counted(number: int, most: int = MOST) -> str:
    """Return a number from `count_up_to`, or a sum of such, as people read it: `1,000+` for more than `most`. Pure."""
    return f"{most:,}+" if number > most else f"{number:,}"
