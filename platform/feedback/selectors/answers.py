"""Queries of kept answers, and the values that are kept encrypted with them."""

import zlib
from collections.abc import Mapping
from typing import Any

from common.encryption import seal_bytes, unseal_bytes
from common.errors import NotFound
from common.tensors import Tensor
from feedback.domain.kept_values import stored_values
from feedback.models import Answer, Kept
from integrations.v2 import tensors

PURPOSE = "kept answers"


def kept_get(*, namespace: str, name: str) -> Kept:
    """Return what is kept of a service's answers; raises NotFound."""
    kept = Kept.objects.select_related("service").filter(service__namespace=namespace, service__name=name).first()
    if kept is None:
        raise NotFound(
            f"no answers of service {namespace}/{name} are kept; PUT feedback/answers, or `fairlead feedback keep`"
        )
    return kept


def kept_of(service_id: int) -> Kept | None:
    """Return what is kept of a service's answers; None where nothing ever was, or all of it was deleted."""
    return Kept.objects.filter(service=service_id).first()


def problem_of(kept: Kept) -> str:
    """Return why further answers are left out; empty while they are kept."""
    if kept.rows >= kept.max_rows:
        limit = f"of {kept.max_rows} answers"
    elif kept.left_out and kept.bytes + kept.bytes // max(1, kept.rows) > kept.max_bytes:
        limit = f"of {kept.max_bytes} bytes"
    else:
        return ""
    return (
        f"the limit {limit} is reached, so that further ones are left out, {kept.left_out} so far; raise it, or keep a "
        "smaller share or fewer days"
    )


def answer_values(answer: Answer) -> dict[str, Any]:
    """Return {"outputs": {name: tensor}, "inputs": {name: tensor}} in V2's JSON form.

    "left_out" is a sentence where values were too large.

    Raises:
        Unavailable: they were encrypted under another secret key.
    """
    return values_in(bytes(answer.sealed))


def values_in(sealed: bytes) -> dict[str, Any]:
    """Return the same of the content of `Answer.sealed`; raises as `answer_values`."""
    return stored_values(zlib.decompress(unseal_bytes(sealed, purpose=PURPOSE)) if sealed else b"")


def kept_tensor(values: Mapping[str, Any], kind: str, name: str) -> Tensor | None:
    """Return one of the "outputs" or "inputs" of `answer_values`, also where it is base64; None without it."""
    item = values[kind].get(name)
    return None if item is None else tensors.outputs_of({"outputs": [{"name": name, **item}]})[name]


def sealed_values(content: bytes) -> bytes:
    """Return values as `Answer.sealed` holds them."""
    return seal_bytes(zlib.compress(content), purpose=PURPOSE) if content else b""
