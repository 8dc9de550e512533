"""Rolling update of one revision's replicas, such as by a restart. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rolling:
    """How many replicas may be surplus, and how many missing, while they are replaced.

    Attributes:
        max_surge: a number, or a percentage of the replicas such as `25%`, rounded up.
        max_unavailable: the same, rounded down.
    """

    max_surge: int | str = 1
    max_unavailable: int | str = 0

    def leaves_one(self, replicas: int) -> bool:
        """Return whether of so many replicas, or of more, one always serves.

        Where both numbers are 0 one replica is taken away (Kubernetes: Deployment, `ResolveFenceposts`).
        """
        surge, unavailable = _number(self.max_surge), _number(self.max_unavailable)
        if isinstance(self.max_unavailable, str):
            unavailable = unavailable * replicas // 100
        return (unavailable or (0 if surge else 1)) < replicas


def _number(amount: int | str) -> int:
    return int(str(amount).removesuffix("%"))
