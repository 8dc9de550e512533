"""Model inspection results: parses the JSON of the runtime's `inspect` and `profile`. Pure.

{"schema": "fairlead.inspect/v1", "platform": ..., "inputs": [...], "outputs": [...]}       exit status 0
{"schema": "fairlead.profile/v1", "load_seconds": ..., "memory_bytes": ..., "batches": []}  exit status 0
{"schema": ..., "error": "one sentence", "of_installation": true or left out}               exit status 2
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from common.errors import InvalidInput
from integrations.clusters.base import JobKind, JobResult
from registry.domain.signature import Signature, parse
from registry.domain.version_lifecycle import Refused, Unchecked

_REFUSED = 2
_MAX_REASON = 2000
_MOST_FOUND = 64
"""Maximum rows that the runtime's `profile` tries by itself."""
# The runtime names a model after its folder in the job, a name unknown to readers of the reason.
_FOLDER_NAMES = re.compile(r"^model '[^']*' version [0-9]+: ")


class NotAccepted(Exception):  # noqa: N818 - carries an outcome, not a fault
    """The runtime did not accept the model; `outcome` says whether it refused the model or did not answer."""

    def __init__(self, outcome: Refused | Unchecked) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


def read_inspection(result: JobResult) -> tuple[Signature, str]:
    """Return the signature and the platform from `inspect`; raises NotAccepted."""
    document = _document(JobKind.INSPECT, result)
    try:
        signature = parse(document)
    except InvalidInput as error:
        raise NotAccepted(
            Unchecked(f"the runtime's inspect answered in a form not known here: {error.message}")
        ) from error
    return signature, str(document.get("platform", ""))


def read_profile(result: JobResult) -> dict[str, object]:
    """Return the measurements of `profile`; raises NotAccepted."""
    document = _document(JobKind.PROFILE, result)
    return {key: value for key, value in document.items() if key != "schema"}


def at_least(profile: Mapping[str, object], rows: int) -> dict[str, object]:
    """Return the profile with at least so many rows, up to `_MOST_FOUND`, where it found a batch size.

    Measurements differ from run to run: a version that took fewer rows than the one before would break clients.
    """
    found = profile.get("max_batch_size")
    if type(found) is not int or rows <= found:
        return dict(profile)
    return {**profile, "max_batch_size": min(rows, _MOST_FOUND)}


def with_batch_size(signature: Signature, profile: Mapping[str, object]) -> Signature:
    """Return the signature with the maximum rows of a request to a service: the profile's, where it has one."""
    rows = profile.get("max_batch_size")
    return replace(signature, max_batch_size=rows) if type(rows) is int and rows > 0 else signature


def _document(kind: JobKind, result: JobResult) -> Mapping[str, object]:
    """Return the JSON of a successful job."""
    try:
        document = json.loads(result.output)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("schema") == f"fairlead.{kind.value}/v1":
        if result.exit_code == 0:
            return {str(key): value for key, value in document.items()}
        if result.exit_code == _REFUSED and isinstance(document.get("error"), str):
            reason = _FOLDER_NAMES.sub("", document["error"])[:_MAX_REASON]
            raise NotAccepted(Refused(reason, of_installation=document.get("of_installation") is True))
    without_answer = f"the {kind.value} of the model ended with exit code {result.exit_code} and no answer known here"
    raise NotAccepted(Unchecked((result.message.strip() or without_answer)[:_MAX_REASON]))
