"""Workload identity of callers from a cluster. Standard library only."""

from dataclasses import dataclass

AUDIENCE = "fairlead"
"""Audience of workload tokens: a token for any other, such as the cluster's API server, is refused."""
RECORDS_AUDIENCE = "fairlead-records"
"""Audience of a token that only uploads a replica's records; a process that opens a model has neither."""


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """A replica that its cluster vouches for.

    Attributes:
        service: the name of its service, whose identity it runs under.
        pod: its own name.
        records_only: its token is for its records only, not for models.
    """

    namespace: str
    service: str
    pod: str
    records_only: bool = False


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """A job's pod about a model before a service runs it; its cluster vouches for it.

    Attributes:
        artifact_digest: of the only model that it may fetch.
        result_id: of the only result that it uploads; empty without one.
        request_id: of the only request that it answers; empty without one.
    """

    namespace: str
    pod: str
    artifact_digest: str
    result_id: str = ""
    request_id: str = ""
