"""Expansion ratio of archives: how many bytes may come out of one. Pure.

Numbers compress to a half or a tenth; an archive of zeros to a thousandth.
"""

ALWAYS_BYTES = 64 << 20
"""What any archive may unpack to, however small it is."""

MOST_TIMES = 100


def most_unpacked(archive_bytes: int) -> int:
    """Return how many bytes an archive of `archive_bytes` may unpack to."""
    return max(ALWAYS_BYTES, MOST_TIMES * archive_bytes)


def refusal(archive_bytes: int) -> str:
    """Return the end of a sentence about an archive that unpacks to more."""
    return (
        f"has {archive_bytes} bytes and unpacks to more than {most_unpacked(archive_bytes)}, "
        f"over {MOST_TIMES} times as much; pack it without compression"
    )
