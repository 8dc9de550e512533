"""Comparison policy: the tolerances and sample sizes for a shadow's answers. Pure.

By default two floats may differ by the square root of their datatype's machine epsilon, absolutely or relative to the
larger of the two: half of the datatype's digits are the same. Everything else is compared for equality.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The tolerance of an output of the shadow to stable's; None is not checked.

    Attributes:
        abs, rel: |a - b| is at most `abs`, or at most `rel` times the larger of |a| and |b| (as `math.isclose` has it).
        top_k: the k best classes along the last axis are the same ones, in any order.
        cosine: least cosine of the angle between the two, as vectors.
    """

    abs: float | None = None
    rel: float | None = None
    top_k: int | None = None
    cosine: float | None = None

    @property
    def asks_closeness(self) -> bool:
        """Return whether single values are judged."""
        return self.abs is not None or self.rel is not None


EXACT = Tolerance(abs=0.0)
HALF_OF_THE_DIGITS: Mapping[str, Tolerance] = {
    "FP64": Tolerance(abs=1.5e-8, rel=1.5e-8),
    "FP32": Tolerance(abs=3.5e-4, rel=3.5e-4),
    "FP16": Tolerance(abs=3.2e-2, rel=3.2e-2),
    "BF16": Tolerance(abs=8.9e-2, rel=8.9e-2),
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The `analysis.comparison` of a step.

    Attributes:
        min_pairs: compared requests required before the verdict that the answers agree.
        min_agreement_percent: of the answers that must agree.
        top_k: checked for every output whose last axis may be classes, besides its tolerance; None for no output.
        tolerances: of outputs by name, instead of the datatype's; None leaves an output uncompared.
        sample_percent: of the copied requests that are compared.
    """

    min_pairs: int = 200
    min_agreement_percent: float = 99.0
    top_k: int | None = None
    tolerances: Mapping[str, Tolerance | None] = field(default_factory=dict)
    sample_percent: float = 100.0

    def ignores(self, output: str) -> bool:
        """Return whether an output is not compared."""
        return output in self.tolerances and self.tolerances[output] is None

    def tolerance(self, output: str, datatype: str) -> Tolerance:
        """Return the tolerance of an output; `top_k` is left to the caller, who knows the shape."""
        return self.tolerances.get(output) or HALF_OF_THE_DIGITS.get(datatype, EXACT)
