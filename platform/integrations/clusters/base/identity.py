"""Who calls the control plane from a cluster. Standard library only."""

from dataclasses import dataclass

AUDIENCE = "fairlead"
"""Whom the tokens of workloads are for: one made for anybody else, such as the cluster's API server, is refused."""
RECORDS_AUDIENCE = "fairlead-records"
"""The same of a token that fetches nothing and brings what a replica recorded; who opens a model has neither."""


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """A replica that its cluster vouches for.

    Attributes:
        service: the name of its service, whose identity it runs under.
        pod: its own name.
        records_only: its token is for what it records, and not for models.
    """

    namespace: str
    service: str
    pod: str
    records_only: bool = False


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """A pod that asks about a model before a service runs it, for which its cluster vouches.

    Attributes:
        artifact_digest: of the only model that it asks about.
        result_id: of the only result that it brings; empty where it brings none.
        request_id: of the only request that it answers; empty where it answers none.
    """

    namespace: str
    pod: str
    artifact_digest: str
    result_id: str = ""
    request_id: str = ""
