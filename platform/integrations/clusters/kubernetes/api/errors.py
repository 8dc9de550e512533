"""Error responses of the API server, as our errors. Pure."""

import json

from common.errors import Conflict, FairleadError, InvalidInput, NotFound, NotPermitted, Unavailable


class HistoryGone(Conflict):
    """The API server no longer has the events since that resourceVersion (410); everything has to be listed."""


class ManagedElsewhere(Conflict):
    """Another manager owns a field and sets another value than the manifest; the sentence names both."""


def refusal(status: int, content: bytes, what: str) -> FairleadError:
    """Return the error for an unsuccessful response; the server's own sentence gives the reason."""
    try:
        sentence = str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        sentence = content[:300].decode(errors="replace")
    if status == 500 and "failed to create typed patch object" in sentence:  # a field that the schema has not
        return InvalidInput(f"Kubernetes refused {what}: {sentence}")
    if status == 409 and sentence.startswith("Apply failed"):
        return ManagedElsewhere(f"{what.removeprefix('PATCH ')} has fields that others manage: {sentence}")
    if status == 410:
        return HistoryGone(f"Kubernetes refused {what}: {sentence}")
    if status in (408, 429) or status >= 500:
        return Unavailable(f"the Kubernetes API server answered {status} to {what}: {sentence}")
    kind = {400: InvalidInput, 401: NotPermitted, 403: NotPermitted, 404: NotFound, 409: Conflict, 422: InvalidInput}
    return kind.get(status, InvalidInput)(f"Kubernetes refused {what}: {sentence}")
