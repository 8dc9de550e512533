"""Traffic split between stable and a rollout's new revision. Pure."""

from dataclasses import dataclass

from deployments.domain.policy import Step, match_text
from integrations.clusters.base import HeaderMatch


@dataclass(frozen=True, slots=True)
class Portion:
    """The requests of the canary or shadow.

    Attributes:
        weight: percent of clients' requests, of those outside the group where there is one.
        mirror: percent of clients' requests that are copied to it; clients never get the answers.
        match: clients' requests with these headers, all of them.
    """

    weight: int = 0
    mirror: int = 0
    match: tuple[HeaderMatch, ...] = ()

    @classmethod
    def of(cls, step: Step) -> "Portion":
        """Return the portion of a step."""
        return cls(step.weight, step.mirror, step.match)

    @property
    def load_percent(self) -> int:
        """Return its percentage of the service's load, as far as a policy defines it: a group's is unknown."""
        return max(self.weight, self.mirror)

    @property
    def has_clients(self) -> bool:
        """Return whether clients get the new revision's answers."""
        return bool(self.weight or self.match)

    def __bool__(self) -> bool:
        """Return whether it is not empty."""
        return self != Portion()

    @property
    def short(self) -> str:
        """Return it in short form: `10 %`, `copies of 20 %`, `x-group: beta and 10 % of the others`."""
        if self.mirror:
            return f"copies of {self.mirror} %"
        if self.match:
            return match_text(self.match) + (f" and {self.weight} % of the others" if self.weight else "")
        return f"{self.weight} %"

    @property
    def requests(self) -> str:
        """Return the requests as text: `10 % of the requests`, `the requests with x-group: beta`."""
        if self.match:
            others = f" and {self.weight} % of the others" if self.weight else ""
            return f"the requests with {match_text(self.match)}{others}"
        return f"{self.mirror or self.weight} % of the requests"

    @property
    def got(self) -> str:
        """Return the new revision's part, after `to get`."""
        return f"copies of {self.requests}" if self.mirror else self.requests

    @property
    def asked(self) -> str:
        """Return the gateway's part, after `asked to`."""
        return f"{'copy' if self.mirror else 'send'} {self.requests}"

    @property
    def done(self) -> str:
        """Return the gateway's action, after `the gateway`."""
        return f"{'copies' if self.mirror else 'sends'} {self.requests}"


NOTHING = Portion()
