"""Contract check: a rollout may not break clients, unless a person accepts the breaks."""

from collections.abc import Mapping
from dataclasses import replace

from common.errors import ContractBroken, InvalidInput
from deployments.domain.service_file import ServiceSpec
from deployments.domain.service_state.batch_size import found_batch_size, kept_batch_size
from deployments.domain.service_state.contract import Contract, Served, contract_between
from deployments.mapping import found_batch_size_of
from deployments.models import Revision
from registry.models import ModelVersion

MAX_REASON = 500


def check_reason(reason: str) -> str:
    """Return the reason for accepting breaks, trimmed; raises InvalidInput."""
    reason = reason.strip()
    if not 0 < len(reason) <= MAX_REASON:
        raise InvalidInput(
            f"reason has {len(reason)} characters; say in 1 to {MAX_REASON} why clients may break", field="reason"
        )
    return reason


def contract_agreed(
    stable: Revision, *, spec: ServiceSpec, version: ModelVersion, accept: str | None, actor: str
) -> Contract:
    """Return the changes for clients of a rollout from `stable` to `version` under `spec`.

    Args:
        stable: the live revision; of a stopped service the one that was, whose clients will return.
        accept: why breaks are accepted, by `actor`; None where they are not.

    Raises:
        ContractBroken: clients would break, and the breaks are not accepted. Its `details` are the breaks.
    """
    live_rows = found_batch_size_of(stable)
    rows = found_batch_size(spec.model_config, version.profile, kept_from(stable, spec, version))
    found = contract_between(
        _served(stable.model_version, stable.model_config, live_rows), _served(version, spec.model_config, rows)
    )
    if not found.breaks:
        return found
    if accept is not None:
        return replace(found, accepted_by=actor, accepted_because=accept)
    state = "is live" if stable.service.live_at is not None else "was live before the service was stopped"
    raise ContractBroken(
        f"{version} would break clients of {stable.model_version}, which {state}: {'; '.join(found.breaks)}; serve it "
        "as another service, or have an admin of the team accept the changes with a reason",
        details=found.breaks,
    )


def kept_from(stable: Revision | None, spec: ServiceSpec, version: ModelVersion) -> int | None:
    """Return the `kept_batch_size` of a revision of `version` under `spec` that comes after `stable`."""
    if stable is None:
        return None
    return kept_batch_size(found_batch_size_of(stable), found_batch_size(spec.model_config, version.profile, None))


def accepted(contract: Contract) -> dict[str, object]:
    """Return the audit log's record of accepted breaks; empty without any."""
    if not contract.breaks:
        return {}
    return {"accepted_contract_changes": list(contract.breaks), "reason": contract.accepted_because}


def _served(version: ModelVersion, config: Mapping[str, object], rows: int) -> Served:
    return Served(str(version), version.signature, {**config, "max_batch_size": rows} if rows else config)
