"""The metrics pages of several worker processes as one page, each series told apart by its worker's slice. Pure."""

from collections.abc import Mapping


def joined(pages: Mapping[str, str]) -> str:
    """Return one page in Prometheus' text format.

    Args:
        pages: by the UUID of the slice that their worker has; series that name a GPU themselves stay as they are.
    """
    families: dict[str, list[str]] = {}
    for uuid, page in pages.items():
        name = ""
        for line in page.splitlines():
            if line.startswith("# "):
                name = line.split(" ", 3)[2]
                lines = families.setdefault(name, [])
                if line not in lines:
                    lines.append(line)
            elif line:
                families.setdefault(name, []).append(_labelled(line, uuid))
    return "".join(f"{line}\n" for lines in families.values() for line in lines)


def _labelled(sample: str, uuid: str) -> str:
    name, brace, rest = sample.partition("{")
    if not brace:
        name, _, value = sample.partition(" ")
        return f'{name}{{gpu_uuid="{uuid}"}} {value}'
    return sample if 'gpu_uuid="' in rest else f'{name}{{gpu_uuid="{uuid}",{rest}'
