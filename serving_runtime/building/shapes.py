"""Optimization profiles in the command line's syntax. Pure."""

import argparse

Shape = tuple[int, ...]


def profile_of(text: str) -> dict[str, tuple[Shape, Shape, Shape]]:
    """Return smallest, usual and largest shape by input of `x:1x4:8x4:32x4,y:...`; raises ArgumentTypeError."""
    found = {}
    for part in text.split(","):
        name, *shapes = part.rsplit(":", 3)
        parsed = [tuple(int(dim) if dim.isdecimal() else 0 for dim in shape.split("x")) for shape in shapes]
        if not name or len(parsed) != 3 or any(0 in shape for shape in parsed):
            raise argparse.ArgumentTypeError(f"'{part}' is not INPUT:MIN:USUAL:MAX, as in x:1x128:8x128:32x128")
        smallest, usual, largest = parsed
        ranks = len({len(shape) for shape in parsed}) == 1
        if not ranks or any(not low <= mid <= high for low, mid, high in zip(smallest, usual, largest, strict=True)):
            raise argparse.ArgumentTypeError(
                f"'{part}': the shapes must be of one rank, and none smaller than the former"
            )
        found[name] = (smallest, usual, largest)
    return found
