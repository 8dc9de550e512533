"""Demands of a team or a namespace on rollouts and approvals. Pure.

Where both have one, both hold. They are compared when a service changes and when somebody approves, never afterwards:
what serves goes on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from accounts.domain.approver import Approver
from common.errors import InvalidInput
from common.identifiers import check_dns_label

MOST_APPROVALS, MOST_POLICIES = 20, 50


@dataclass(frozen=True, slots=True)
class Demand:
    """What one team or namespace demands.

    Attributes:
        of: who, such as `team red` or `namespace fraud`.
        policies: names of the policies that rollouts may use; empty for any.
        approvals: how many approvals a rollout's policy must ask for at one point, at least.
        signed_in: whether only people approve and reject who signed in at the identity provider themselves.
        digests: whether service files must name images by their digest.
    """

    of: str
    policies: tuple[str, ...] = ()
    approvals: int = 0
    signed_in: bool = False
    digests: bool = False

    def __bool__(self) -> bool:
        """Return whether it demands anything."""
        return bool(self.policies or self.approvals or self.signed_in or self.digests)

    def __str__(self) -> str:
        """Return what it demands, as the object of a sentence."""
        policies = f"the {'policy' if len(self.policies) == 1 else 'policies'} {', '.join(self.policies)}"
        approvals = (
            "an approval of each rollout" if self.approvals == 1 else f"{self.approvals} approvals of each rollout"
        )
        words = [policies] * bool(self.policies) + [approvals] * bool(self.approvals)
        words += ["approvers who signed in themselves"] * self.signed_in
        return "; ".join(words + ["images by their digest"] * self.digests) or "nothing"

    def check(self) -> None:
        """Raise InvalidInput where a value is none that can be met."""
        for name in self.policies:
            check_dns_label(name, field="policies")
        if len(set(self.policies)) != len(self.policies) or len(self.policies) > MOST_POLICIES:
            raise InvalidInput(
                f"policies has {len(self.policies)} names; expected at most {MOST_POLICIES}, each once",
                field="policies",
            )
        if not 0 <= self.approvals <= MOST_APPROVALS:
            raise InvalidInput(
                f"approvals is {self.approvals}; expected 0 to {MOST_APPROVALS}, 0 for none", field="approvals"
            )

    def as_json(self) -> dict[str, object]:
        """Return it as the audit log has it."""
        return {
            "policies": list(self.policies),
            "approvals": self.approvals,
            "signed_in": self.signed_in,
            "digests": self.digests,
        }


def signed_in_refusal(approver: Approver, demands: Iterable[Demand]) -> str:
    """Return why the user may not decide under the demands; empty where he may."""
    demand = next((each for each in demands if each.signed_in), None)
    if demand is None or approver.is_signed_in:
        return ""
    return (
        f"{demand.of} demands that approvers sign in themselves, and {approver.username} did not for this token; sign "
        "in at the identity provider, or use a token that you made in such a session"
    )
