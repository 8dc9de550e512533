"""Reading of the gateway's access log: each complete line counts once, whenever the process is killed.

The sums of a piece and the position behind it are stored in one transaction, and the position changes only from where
the piece began: of two readers one counts. A complete file is deleted once it was read; should the process end
before, the next reading finds nothing more in it.
"""

import hashlib
import logging
import os
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.db import IntegrityError, transaction
from django.db.models import F

from integrations.clusters.local.access_log_files import AccessLogFiles, LogFile
from usage.domain.line import Read, read_lines
from usage.models import LogPosition, LogReading
from usage.services.hours import hours_add

logger = logging.getLogger(__name__)

PIECE_BYTES = 1 << 20
"""Most bytes of one transaction."""
_ROW = 1


def access_log_read(*, folder: Path, now: datetime) -> int:
    """Count all complete lines in the folder of the access log; returns their number.

    A half line waits for its rest, or is skipped at the end of a file that gets no more.
    """
    files = AccessLogFiles(folder)
    lines = 0
    for each in files.files():
        try:
            with each.path.open("rb") as file:
                name = _name_of(file, is_complete=each.is_complete)
                found, is_read = _read_file(file, name, each, now) if name else (0, each.is_complete)
        except FileNotFoundError:
            continue  # renamed or deleted meanwhile
        lines += found
        if each.is_complete and is_read:
            each.path.unlink(missing_ok=True)
            LogPosition.objects.filter(file=name).update(deleted_at=now)
    LogReading.objects.update_or_create(pk=_ROW, defaults={"dropped_bytes": files.dropped_bytes(), "read_at": now})
    return lines


def _read_file(file: BinaryIO, name: str, log: LogFile, now: datetime) -> tuple[int, bool]:
    """Count the complete lines behind the stored position; returns their number, and whether these are all."""
    offset = LogPosition.objects.filter(file=name).values_list("offset", flat=True).first() or 0
    lines = 0
    while True:
        file.seek(offset)
        piece = file.read(PIECE_BYTES)
        end = piece.rfind(b"\n") + 1
        if not end and (len(piece) == PIECE_BYTES or log.is_complete):
            end = len(piece)  # no line of the gateway is so long, and no rest comes
        if not end:
            return lines, True
        read = read_lines(piece[:end].removesuffix(b"\n").split(b"\n"))
        if not _store(read, name, offset, offset + end, now):
            return lines, False
        if read.bad:
            logger.warning("%d lines of %s are skipped, the first because it is %s", read.bad, log.path, read.why)
        lines += read.lines
        offset += end


def _store(read: Read, file: str, begin: int, end: int, now: datetime) -> bool:
    """Add the sums and move the position; returns False where another reader has done so."""
    try:
        with transaction.atomic():
            if begin:
                if not LogPosition.objects.filter(file=file, offset=begin).update(offset=end, read_at=now):
                    return False
            else:
                LogPosition.objects.create(file=file, offset=end, read_at=now)
            LogReading.objects.get_or_create(pk=_ROW, defaults={"read_at": now})
            LogReading.objects.filter(pk=_ROW).update(lines=F("lines") + read.lines, bad=F("bad") + read.bad)
            hours_add(read.sums)
    except IntegrityError:
        return False  # another reader was first; what it left is found by the next reading
    return True


def _name_of(file: BinaryIO, *, is_complete: bool) -> str:
    """Return what identifies the file by whatever name; empty without a line, and while the first one may go on."""
    first = file.readline(PIECE_BYTES)
    if not first or not (first.endswith(b"\n") or is_complete or len(first) == PIECE_BYTES):
        return ""
    return f"{os.fstat(file.fileno()).st_ino}:{hashlib.sha256(first).hexdigest()}"
