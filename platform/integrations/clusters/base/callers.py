"""Callers of services as gateways know them: who may call, by which keys, from which pages, and how much. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

KEY_ISSUER, KEY_AUDIENCE = "fairlead", "fairlead-gateway"
"""Of every key that the control plane signs."""
CONSOLE = "fairlead-console"
"""The control plane as a caller, which calls a service for people who may change it."""


@dataclass(frozen=True, slots=True)
class Access:
    """Callers of a service: all with a valid key for it or token of an issuer, or where any are named only those.

    Attributes:
        teams, users, keys: callers with keys of these.
        subjects: callers with tokens of issuers: `<name of the issuer>:<sub>`, or the beginning of a `sub` with `*`.
    """

    teams: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssuerKeys:
    """An issuer whose tokens gateways accept, such as an OpenID provider or a Kubernetes cluster.

    Attributes:
        name: what `Access.subjects` name it by.
        issuer, audience: of its tokens, which are JSON Web Tokens (RFC 7519).
        public: its JSON Web Keys (RFC 7517); public ones only, of kinds that gateways verify.
    """

    name: str
    issuer: str
    audience: str
    public: tuple[Mapping[str, str], ...]


ANY_ORIGIN = "*"


@dataclass(frozen=True, slots=True)
class Cors:
    """Web pages that may call a service from a browser, by their origins, or `ANY_ORIGIN` alone.

    Attributes:
        max_age_s: how long a browser may keep the answer to its preflight.
    """

    origins: tuple[str, ...]
    max_age_s: int = 600


MOST_PER_SECOND = 1_000_000
"""The largest limit of requests a second that can be set."""
MOST_ROWS_PER_MINUTE = 1_000_000_000
"""The largest limit of rows a minute that can be set."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the requests to a service; None limits nothing.

    Attributes:
        requests_per_second: of all callers together.
        caller_requests_per_second: of each caller; those without a key are one caller.
        request_bytes: of the body of each request.
        rows_per_minute, caller_rows_per_minute: rows of their requests, as replicas count them.
        caller_concurrent_requests: unanswered requests of each caller.
    """

    requests_per_second: int | None = None
    caller_requests_per_second: int | None = None
    request_bytes: int | None = None
    rows_per_minute: int | None = None
    caller_rows_per_minute: int | None = None
    caller_concurrent_requests: int | None = None


@dataclass(frozen=True, slots=True)
class RequestRate:
    """Limit of the requests of a key to all services together."""

    key: str
    requests_per_second: int


@dataclass(frozen=True, slots=True)
class TeamRate:
    """Limit of the requests of a team's keys to all services together."""

    team: str
    requests_per_second: int


@dataclass(frozen=True, slots=True)
class RowRate:
    """Limit of the rows of a key, or of a team's keys, at all services together; one of both is empty."""

    rows_per_minute: int
    key: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class CallerKeys:
    """How a gateway checks the keys of callers.

    Attributes:
        issuer, audience: of every key, which is a JSON Web Token (RFC 7519).
        public: JSON Web Keys (RFC 7517) of the signatures; public ones only.
        revoked: ids of the tokens that are refused although they are signed and have not expired.
        issuers: others whose tokens are accepted.
        rates, team_rates: limits of keys and of teams, each once.
        row_rates: limits of the rows of keys and of teams, each once.
        exhausted: teams whose keys are refused since their quota of the month is used up.
        exhausted_keys, exhausted_services: the same of keys, and of services (`<namespace>/<service>`).
    """

    issuer: str = KEY_ISSUER
    audience: str = KEY_AUDIENCE
    public: tuple[Mapping[str, str], ...] = ()
    revoked: tuple[str, ...] = ()
    issuers: tuple[IssuerKeys, ...] = ()
    rates: tuple[RequestRate, ...] = ()
    team_rates: tuple[TeamRate, ...] = ()
    row_rates: tuple[RowRate, ...] = ()
    exhausted: tuple[str, ...] = ()
    exhausted_keys: tuple[str, ...] = ()
    exhausted_services: tuple[str, ...] = ()
