"""Features of exchanges: texts of inputs stay only where inputs are kept."""

from feedback.domain.drift.features import Kind, Source
from feedback.reconcile.drift_exchanges import taken_from
from integrations.clusters.base import Exchange

TEXT = {"name": "town", "datatype": "BYTES", "shape": [1, 1], "data": ["Ulm"]}
CLASS = {"name": "label", "datatype": "INT64", "shape": [1], "data": [3]}
EXCHANGE = Exchange("r1", "digits-00001", "1", 1.0, {"inputs": [TEXT]}, {"outputs": [CLASS]})


def test_texts_of_inputs_are_classes_only_where_inputs_are_kept() -> None:
    without, with_texts = (taken_from([EXCHANGE], "", with_texts=kept).values for kept in (False, True))
    assert {each.name for each in with_texts.keys() - without.keys()} == {"text of town"}
    assert [each.source for each in without if each.kind is Kind.CLASS] == [Source.ANSWER]
