"""Outputs of tree ensembles: FIL's parameters applied to raw predictions, for both libraries of trees. Pure.

Triton: FIL backend, model configuration. `output_class` selects the class instead of its score, `predict_proba` the
probability of every class; without either the output is the library's own prediction.
"""

import enum
from dataclasses import dataclass

import numpy as np

from serving_runtime.backends.parameters import Parameters
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError

PARAMETERS = ("output_class", "predict_proba", "threshold")


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """Facts of a file of trees.

    Attributes:
        features: in a row.
        width: numbers per row that the library predicts.
        classes: 0 where they are not the probabilities of classes; 2 with width 1 is that of the second class.
        answers_class: the objective itself selects the class of the highest probability.
    """

    features: int
    width: int
    classes: int = 0
    answers_class: bool = False


class Form(enum.Enum):
    """Kinds of an output row."""

    RAW = "what the library predicts"
    CLASS = "the number of a class"
    PROBABILITIES = "the probability of each class"


@dataclass(frozen=True, slots=True)
class Answer:
    """Maps predictions to outputs."""

    form: Form
    width: int
    threshold: float

    def of(self, raw: Array) -> Array:
        """Return [rows, width] of predictions [rows, the library's width]."""
        if self.form is Form.PROBABILITIES and raw.shape[1] == 1:
            return np.concatenate([1 - raw, raw], axis=1)
        if self.form is Form.CLASS:
            chosen = raw > self.threshold if raw.shape[1] == 1 else raw.argmax(axis=1)[:, None]
            return chosen.astype(raw.dtype)
        return raw


def answer(facts: TreeFacts, parameters: Parameters) -> Answer:
    """Return the output of a model's parameters; raises ModelError where its file has no classes."""
    wants_class = parameters.boolean("output_class", default=facts.answers_class)
    wants_probabilities = parameters.boolean("predict_proba", default=False)
    threshold = parameters.real("threshold", 0.5)
    for name, wanted in (("output_class", wants_class), ("predict_proba", wants_probabilities)):
        if wanted and not facts.classes:
            raise ModelError(f"parameter '{name}' needs a classifier; the objective of this model is not one's")
    if wants_probabilities:
        return Answer(Form.PROBABILITIES, facts.classes, threshold)
    if wants_class:
        return Answer(Form.CLASS, 1, threshold)
    return Answer(Form.RAW, facts.width, threshold)
