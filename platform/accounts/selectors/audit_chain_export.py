"""Export of the whole audit log with its hash chain, as lines of JSON that are verified without a server.

The first line is signed and names the end (`ExportHead`). Then follow, in the order of the chain, an object for each
entry with its link, and one for each checkpoint.
"""

import json
from collections.abc import Iterator
from datetime import datetime

from accounts.domain.audit_chain import ExportHead, entry_fields, moment_text, signed_line
from accounts.models import AuditEntry, AuditLink
from accounts.selectors.audit_chain import checkpoints_between, private_keys, pruned_to, public_keys, with_entries
from common.errors import Conflict, Unavailable

_AT_ONCE = 500


def audit_chain_export(*, now: datetime) -> Iterator[bytes]:
    """Return the file, some hundred lines at a time; it ends at what is chained now.

    Raises:
        Conflict: nothing is chained yet; later on, that entries were pruned meanwhile.
        Unavailable: the signing key cannot be read.
    """
    pruned, last = pruned_to(), AuditLink.objects.order_by("-position").first()
    if last is not None:
        end = last.position, last.hash
    elif pruned is not None:
        end = pruned[0].position, pruned[0].hash
    else:
        raise Conflict("no entry of the audit log is chained yet; the worker does that every 5 s")
    keys = private_keys()
    if not keys:
        raise Unavailable(
            "the audit signing key cannot be read with the present FAIRLEAD_SECRET_KEY; name the one it was kept under "
            "in FAIRLEAD_SECRET_KEY_FALLBACKS"
        )
    head = ExportHead(now, pruned, *end, tuple(public_keys()))
    return _pieces(head.line(keys[0]), 0 if pruned is None else pruned[0].position, end[0])


def _pieces(head: dict[str, object], start: int, end: int) -> Iterator[bytes]:
    yield _line(head)
    position = start
    while position < end:
        links = AuditLink.objects.filter(position__gt=position, position__lte=end).order_by("position")[:_AT_ONCE]
        rows = with_entries(links)
        until = rows[-1][0].position if rows else end
        signed = checkpoints_between(position + 1, until)
        if (pruned := pruned_to()) is not None and pruned[0].position > start:
            raise Conflict("entries of the audit log were pruned while it was exported; export it again")
        lines: list[tuple[int, dict[str, object]]] = [(row.position, entry_line(row, entry)) for row, entry in rows]
        lines += [(each[0].position, {"checkpoint": signed_line(*each)}) for each in signed]
        yield b"".join(_line(line) for _, line in sorted(lines, key=lambda pair: pair[0]))
        position = until


def entry_line(link: AuditLink, entry: AuditEntry | None) -> dict[str, object]:
    """Return an entry with its link, as files and sinks have it; without its fields where it was removed."""
    place = {"position": link.position, "linked_at": moment_text(link.linked_at), "hash": link.hash}
    return {"id": link.entry, **({} if entry is None else entry_fields(entry)), **place}


def _line(value: dict[str, object]) -> bytes:
    return json.dumps(value).encode() + b"\n"
