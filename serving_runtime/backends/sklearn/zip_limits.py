"""Zip bomb limits: the sizes in a zip archive's directory are checked before anything is unpacked. Pure."""

import zipfile

from serving_runtime.common.errors import ModelError
from serving_runtime.shared.archive_limits import MOST_TIMES, most_unpacked

_MOST_ENTRIES = 500_000


def check_sizes(archive: zipfile.ZipFile, archive_bytes: int, name: str) -> None:
    """Raise ModelError for too many entries, and for entries that no honest compression would expand so far.

    Unpacked data is never longer than the directory says, so that is sufficient. Numbers compress to a half or a tenth;
    an archive of zeros to a thousandth.
    """
    entries = archive.infolist()
    total = sum(entry.file_size for entry in entries)
    if len(entries) > _MOST_ENTRIES:
        raise ModelError(f"{name} has {len(entries)} entries; served are archives of at most {_MOST_ENTRIES}")
    if total > most_unpacked(archive_bytes):
        raise ModelError(
            f"{name} has {archive_bytes} bytes and would be unpacked to {total}, "
            f"more than {MOST_TIMES} times as much; save it without compression"
        )
    if len({entry.filename for entry in entries}) != len(entries):
        raise ModelError(f"{name} has an entry twice; save it again")
