"""Pairwise comparison of two answers to the same request. Pure.

An answer to a batch is an answer for each of its rows: where all inputs and outputs have the same first axis, each row
agrees or does not by itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from common.tensors import Tensor
from deployments.domain.comparison.comparison_policy import Terms, Tolerance
from deployments.domain.comparison.difference import MOST, Difference, Kind, compare_tensors, structural
from deployments.domain.comparison.ranking import looks_like_scores

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one side.

    Attributes:
        outputs: by name; empty where the answer is an error.
        error: the error's sentence; None with outputs.
        blames_request: the error blames the request (4xx).
    """

    outputs: Tensors
    error: str | None = None
    blames_request: bool = False


class Outcome(StrEnum):
    """The outcome of a pair.

    Agrees, Differs: compared. ShadowFailed: it answered with an error where stable did not, which is a difference; so
    is StableRefused, a request that stable rejects and the shadow answers. Both count as answers that do not agree.
    StableFailed, BothFailed, NothingAsked (the policy leaves all outputs uncompared): nothing is comparable, so they
    count neither for nor against the shadow.
    """

    AGREES = "Agrees"
    DIFFERS = "Differs"
    SHADOW_FAILED = "ShadowFailed"
    STABLE_REFUSED = "StableRefused"
    STABLE_FAILED = "StableFailed"
    BOTH_FAILED = "BothFailed"
    NOTHING_ASKED = "NothingAsked"

    @property
    def is_compared(self) -> bool:
        """Return whether the pair counts for the agreement."""
        return self not in (Outcome.STABLE_FAILED, Outcome.BOTH_FAILED, Outcome.NOTHING_ASKED)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A pair of answers, compared.

    Attributes:
        rows, agreeing_rows: of the answers; of an error all rows of the request.
        excess: the largest difference as a multiple of the tolerance; above 1 is beyond.
        message: what differs, in words.
    """

    outcome: Outcome
    rows: int = 1
    agreeing_rows: int = 0
    differences: tuple[Difference, ...] = ()
    excess: float = 0.0
    message: str = ""

    @property
    def agreement(self) -> float:
        """Return the share of the answer's rows that agree, 0 to 1."""
        return self.agreeing_rows / self.rows


def compare(inputs: Tensors, stable: Answer, shadow: Answer, terms: Terms) -> Comparison:
    """Return how the answers to one request differ under a policy's terms."""
    if (failed := _failed(stable, shadow)) is not None:
        return failed
    rows = _rows(inputs, stable.outputs, shadow.outputs)
    differences = tuple(_differences(stable.outputs, shadow.outputs, terms, rows))
    if all(difference.kind is Kind.EXTRA for difference in differences):
        return Comparison(Outcome.NOTHING_ASKED)
    agrees = np.ones(rows, bool)
    for difference in differences:
        agrees &= difference.agrees
    messages = [f"{each.output}: {each.message}" for each in differences if each.message]
    return Comparison(
        Outcome.AGREES if agrees.all() else Outcome.DIFFERS,
        rows=rows,
        agreeing_rows=int(agrees.sum()),
        differences=differences,
        excess=max((each.excess for each in differences), default=0.0),
        message="; ".join(messages),
    )


def _failed(stable: Answer, shadow: Answer) -> Comparison | None:
    """Return the outcome of a pair in which a side answered with an error; None where none did."""
    if shadow.error is not None and stable.error is None:
        return Comparison(Outcome.SHADOW_FAILED, excess=MOST, message=f"the new version failed: {shadow.error}")
    if stable.error is not None and shadow.error is None:
        if stable.blames_request:
            refused = f"stable refused the request, which the new version answered: {stable.error}"
            return Comparison(Outcome.STABLE_REFUSED, excess=MOST, message=refused)
        return Comparison(Outcome.STABLE_FAILED, message=f"stable failed: {stable.error}")
    return None if stable.error is None else Comparison(Outcome.BOTH_FAILED, message=f"both failed: {stable.error}")


def _rows(inputs: Tensors, *outputs: Tensors) -> int:
    """Return the length of the first axis that all tensors share; 1 where they share none."""
    tensors = [tensor for each in (inputs, *outputs) for tensor in each.values()]
    first = {tensor.values.shape[0] if tensor.values.ndim else 0 for tensor in tensors}
    return max(1, *first) if inputs and len(first) == 1 else 1


def _differences(stable: Tensors, shadow: Tensors, terms: Terms, rows: int) -> Iterator[Difference]:
    for name in sorted({*stable, *shadow}):
        if terms.ignores(name):
            continue
        ours, theirs = stable.get(name), shadow.get(name)
        if theirs is None and ours is not None:
            yield structural(name, ours.datatype, Kind.MISSING, rows, "the new version's answer has no such output")
        elif ours is None and theirs is not None:
            # No client reads it yet, so it is extra but counts neither way (registry.domain.contract takes it for a
            # note).
            extra = structural(name, theirs.datatype, Kind.EXTRA, rows, "stable's answer has no such output")
            yield replace(extra, agrees=np.ones(rows, bool), excess=0.0)
        elif ours is not None and theirs is not None:
            yield compare_tensors(name, ours, theirs, _tolerance(terms, name, ours), rows)


def _tolerance(terms: Terms, name: str, tensor: Tensor) -> Tolerance:
    """Return the tolerance of an output, with the policy's top-k where the output may be scores of classes."""
    tolerance = terms.tolerance(name, tensor.datatype)
    if tolerance.top_k is None and name not in terms.tolerances and looks_like_scores(tensor.values):
        return replace(tolerance, top_k=terms.top_k)
    return tolerance
