"""The head of LightGBM's text format, and whether the file is whole.

LightGBM ends the process at some files that were cut off, so that a file is looked at before LightGBM is.
"""

from pathlib import Path

from serving_runtime.errors import ModelError


def read_head(file: Path) -> dict[str, str]:
    """Return the `key=value` lines before the first tree; raises ModelError where the file is no whole model."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read: {error.strerror}") from error
    if content.split(b"\n", 1)[0].strip() != b"tree":
        raise ModelError(f"{file.name} is not a LightGBM model in text form, as Booster.save_model writes it")
    start = content.find(b"Tree=0")
    head = content[: start if start >= 0 else content.find(b"\n\n")].decode("utf-8", "replace")
    found = dict(line.strip().split("=", 1) for line in head.splitlines() if "=" in line)
    _check_whole(content, start, found.get("tree_sizes", ""), file.name)
    for key in ("num_class", "num_tree_per_iteration", "max_feature_idx"):
        if not found.get(key, "").isdecimal():
            raise ModelError(f"{file.name} is not a LightGBM model: its head has no number {key}")
    return found


def _check_whole(content: bytes, start: int, tree_sizes: str, name: str) -> None:
    """Raise ModelError unless the trees are as long as the head says, and their end is where it says."""
    sizes = tree_sizes.split()
    if start < 0 or not sizes or not all(size.isdecimal() for size in sizes):
        raise ModelError(f"{name} is not a LightGBM model: it has no trees")
    end = start + sum(map(int, sizes))
    if not content[end : end + 64].lstrip().startswith(b"end of trees"):
        raise ModelError(f"{name} is cut off or was edited: its trees do not end where its head says")
