"""What has become worse since the last recorded run: ratios only, since absolute figures are the machine's. Pure."""

from collections.abc import Mapping

LOWEST = {"cpu": 0.8, "rate": 0.7}
"""How much of a recorded ratio there has to be; other work on the machine moves processor time less than rates."""


def worse(recorded: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """Return a sentence for each ratio that was recorded, and is now below what it may be."""
    sentences = []
    for name, before in recorded.items():
        now = found.get(name)
        least = before * LOWEST[name.rpartition(" ")[2]]
        if now is not None and now < least:
            sentences.append(f"{name}: {now:.2f} times, where {before:.2f} was recorded and {least:.2f} is the least")
    return sentences


def passed(recorded: Mapping[str, float], found: Mapping[str, float]) -> str:
    """Return the sentence about a run of which nothing is worse."""
    compared = len(recorded.keys() & found.keys())
    if not compared:
        return "nothing was compared with the recorded run: it has no ratio that this one has, too"
    return f"none of the {compared} ratios that were compared is worse than the recorded ones allow"
