"""Quotas of a team: model versions, their bytes, and rates of its requests. Pure."""

from dataclasses import dataclass

MOST_VERSIONS, MOST_BYTES = 2**31 - 1, 2**63 - 1
"""The largest limits that can be set."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Model versions of a team's models, and the bytes of their files."""

    versions: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of a team; None for none.

    Attributes:
        requests_per_second: of its keys, to all services together.
        rows_per_minute: of the requests of its keys.
    """

    max_versions: int | None
    max_bytes: int | None
    requests_per_second: int | None = None
    rows_per_minute: int | None = None

    @property
    def limits_versions(self) -> bool:
        """Return whether another version, or its bytes, could exceed it."""
        return self.max_versions is not None or self.max_bytes is not None


def refusal(team: str, quota: Quota, usage: Usage, *, more_bytes: int) -> str:
    """Return why one version more, of `more_bytes`, exceeds the quota; empty where it does not."""
    advice = "delete versions, or ask an administrator of the installation for more"
    if quota.max_versions is not None and usage.versions + 1 > quota.max_versions:
        return f"team {team!r} has {usage.versions} of {quota.max_versions} model versions; {advice}"
    if quota.max_bytes is not None and usage.size_bytes + more_bytes > quota.max_bytes:
        used = f"{usage.size_bytes} of {quota.max_bytes} bytes of model versions"
        return f"team {team!r} has {used}, and this version has {more_bytes}; {advice}"
    return ""
