"""Where screenshots are kept, and one page with all of a folder, so that a person looks them through in a minute."""

import html
import os
from pathlib import Path

_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Screenshots</title>
<style>body{font:14px system-ui;margin:2rem}figure{display:inline-block;margin:0 1rem 2rem 0;vertical-align:top}
img{display:block;max-height:60rem;border:1px solid #999}h2{margin:2rem 0 1rem}</style>"""


def folder(name: str = "") -> Path:
    """Return the folder of screenshots, or one in it: `build/screenshots`, or what `FAIRLEAD_SCREENSHOTS` names."""
    made = Path(os.environ.get("FAIRLEAD_SCREENSHOTS") or Path(__file__).parents[3] / "build/screenshots") / name
    made.mkdir(parents=True, exist_ok=True)
    return made


def write(folder: Path) -> Path:
    """Write `index.html`, by page and state; returns its path."""
    looks: dict[str, list[Path]] = {}
    for picture in sorted(folder.glob("*.png")):
        looks.setdefault(picture.stem.rsplit("-", 2)[0], []).append(picture)
    parts = [_HEAD]
    for look, pictures in looks.items():
        parts.append(f"<h2>{html.escape(look)}</h2>")
        for each in pictures:
            name = html.escape(each.name)
            parts.append(f'<figure><img loading="lazy" src="{name}" alt=""><figcaption>{name}</figcaption></figure>')
    index = folder / "index.html"
    index.write_text("\n".join(parts), encoding="utf-8")
    return index
