"""Contract changes of a rollout for clients, for display, and the flag by which an admin allows breaking ones."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from fairlead_cli.errors import ApiError, CliError

_BROKEN = "contract_broken"


def force_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--force-contract",
        metavar="REASON",
        help="allows the rollout to break requests and answers of present clients; for admins of the "
        "team, recorded with the reason",
    )


def as_fields(reason: str | None) -> dict[str, Any]:
    """Return the flag's fields of a request's body."""
    return {} if reason is None else {"accept_contract_changes": True, "reason": reason}


def as_query(reason: str | None) -> str:
    """Return the flag for a request whose body is a file: a query without its `?`, empty without the flag."""
    return "" if reason is None else urlencode({"accept_contract_changes": "true", "reason": reason})


@contextmanager
def naming_the_flag() -> Iterator[None]:
    """Add the flag's name to a refusal because of the contract."""
    try:
        yield
    except ApiError as error:
        if error.refusal.code != _BROKEN:
            raise
        raise CliError(f"{error}; the flag for that is --force-contract REASON") from error


def lines(contract: Mapping[str, Any] | None) -> list[str]:
    """Return a line per change for clients; empty without a known change."""
    if not contract:
        return []
    sentences = [f"breaks clients: {sentence}" for sentence in contract["breaks"]]
    if sentences and contract["accepted_by"]:
        sentences.append(f"accepted by {contract['accepted_by']}: {contract['accepted_because']}")
    sentences += [f"changes for clients: {sentence}" for sentence in contract["notes"]]
    return sentences + ([contract["unknown"]] if contract["unknown"] else [])
