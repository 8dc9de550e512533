"""Service list filter, from the query of an address, so that each state of the list can be linked to. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from common.errors import InvalidInput
from deployments.domain.phases import ServicePhase

LIMIT = 50
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class ServiceFilter:
    """A part of the list.

    Attributes:
        words: each must occur in the name, the namespace or the model's name, in any case.
        phase: of the services; None for all.
        page: counts from 1.
    """

    words: tuple[str, ...] = ()
    phase: ServicePhase | None = None
    page: int = 1

    @property
    def text(self) -> str:
        """Return the words as typed."""
        return " ".join(self.words)

    @property
    def offset(self) -> int:
        """Return the number of services before the page."""
        return (self.page - 1) * LIMIT

    @property
    def query(self) -> str:
        """Return the query of its address, without a question mark; empty for the first page of all."""
        fields = {"q": self.text, "phase": self.phase or "", "page": self.page if self.page > 1 else ""}
        return urlencode({name: value for name, value in fields.items() if value})

    def on(self, page: int) -> "ServiceFilter":
        """Return another page of the same services."""
        return replace(self, page=page)

    def of(self, phase: ServicePhase | None) -> "ServiceFilter":
        """Return the first page of those in a phase."""
        return replace(self, phase=phase, page=1)


EVERYTHING = ServiceFilter()


def parse_filter(fields: Mapping[str, str]) -> ServiceFilter:
    """Return the filter of an address's query; raises InvalidInput."""
    text, phase, page = fields.get("q", ""), fields.get("phase", ""), fields.get("page", "")
    if len(text) > _LONGEST:
        raise InvalidInput(f"q has {len(text)} characters; a search may have {_LONGEST}", field="q")
    if phase and phase not in list(ServicePhase):
        raise InvalidInput(f"phase is {phase[:40]!r}; expected one of {', '.join(ServicePhase)}", field="phase")
    if page and not (page.isascii() and page.isdecimal() and int(page[:9]) > 0 and len(page) < 9):
        raise InvalidInput(f"page is {page[:40]!r}; expected a number from 1", field="page")
    return ServiceFilter(tuple(text.split()), ServicePhase(phase) if phase else None, int(page or 1))
