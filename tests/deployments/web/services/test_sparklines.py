"""Small drawings of rates."""

from deployments.web.services.sparklines import spark_of


def test_the_highest_rate_is_at_the_top_and_none_at_the_bottom() -> None:
    spark = spark_of([0.0, 5.0, 10.0], "words")
    assert spark.line == "M0,27 60,14.5 120,2"
    assert spark.area == "M0,28 0,27 60,14.5 120,2 120,28Z"


def test_where_nobody_looked_there_is_a_gap() -> None:
    assert spark_of([1.0, 1.0, None, 1.0, 1.0], "").line == "M0,2 30,2M90,2 120,2"


def test_a_single_look_can_be_seen() -> None:
    assert spark_of([None, 1.0, None], "").line == "M60,2 61,2"


def test_without_any_look_nothing_is_drawn() -> None:
    assert spark_of([None, None], "").line == ""
