"""What of a service's requests a rollout's new revision gets. Pure."""

from dataclasses import dataclass

from deployments.domain.policy import Step, match_text
from integrations.clusters.base import HeaderMatch


@dataclass(frozen=True, slots=True)
class Portion:
    """What the canary or shadow gets of the requests.

    Attributes:
        weight: percent of clients' requests, of those outside the group where there is one.
        mirror: percent of clients' requests of which it gets a copy; clients never see the answers.
        match: clients' requests with these headers, all of them.
    """

    weight: int = 0
    mirror: int = 0
    match: tuple[HeaderMatch, ...] = ()

    @classmethod
    def of(cls, step: Step) -> "Portion":
        """Return what a step gives."""
        return cls(step.weight, step.mirror, step.match)

    @property
    def load_percent(self) -> int:
        """Return which part of the service's load it is, as far as a policy can say: a group's is not known."""
        return max(self.weight, self.mirror)

    @property
    def has_clients(self) -> bool:
        """Return whether clients get the new revision's answers."""
        return bool(self.weight or self.match)

    def __bool__(self) -> bool:
        """Return whether it is anything at all."""
        return self != Portion()

    @property
    def short(self) -> str:
        """Return it in as few words as can be: `10 %`, `copies of 20 %`, `x-group: beta and 10 % of the others`."""
        if self.mirror:
            return f"copies of {self.mirror} %"
        if self.match:
            return match_text(self.match) + (f" and {self.weight} % of the others" if self.weight else "")
        return f"{self.weight} %"

    @property
    def requests(self) -> str:
        """Return which requests these are: `10 % of the requests`, `the requests with x-group: beta`."""
        if self.match:
            others = f" and {self.weight} % of the others" if self.weight else ""
            return f"the requests with {match_text(self.match)}{others}"
        return f"{self.mirror or self.weight} % of the requests"

    @property
    def got(self) -> str:
        """Return what the new revision gets, after `to get`."""
        return f"copies of {self.requests}" if self.mirror else self.requests

    @property
    def asked(self) -> str:
        """Return what the gateway is asked to do, after `asked to`."""
        return f"{'copy' if self.mirror else 'send'} {self.requests}"

    @property
    def done(self) -> str:
        """Return what the gateway does with it, after `the gateway`."""
        return f"{'copies' if self.mirror else 'sends'} {self.requests}"


NOTHING = Portion()
