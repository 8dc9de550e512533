"""Name suggestions for a new service's form. Pure."""

import re
from collections.abc import Collection, Sequence

from deployments.domain.service_file.file import LONGEST_NAME

_MOST = 20
_NO_LABEL = re.compile("[^a-z0-9]+")


def names_for(model: str) -> tuple[str, ...]:
    """Return names of services for a model, the likeliest first: its own as a DNS label, then that with a number."""
    name = _NO_LABEL.sub("-", model.lower()).strip("-")[: LONGEST_NAME - len(f"-{_MOST}")].rstrip("-")
    return (name, *(f"{name}-{number}" for number in range(2, _MOST + 1)))


def first_free(names: Sequence[str], taken: Collection[str]) -> str:
    """Return the first name that is not taken; empty where all are."""
    return next((name for name in names if name not in taken), "")
