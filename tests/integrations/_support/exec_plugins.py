"""Exec plugins: programs of a few lines of shell or Python."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

V1 = "client.authentication.k8s.io/v1"


def program(folder: Path, code: str, *, name: str = "plugin") -> Path:
    """Write a program in Python, and return its path."""
    place = folder / name
    place.write_text(f"#!{sys.executable} -I\n{code}\n")
    place.chmod(0o755)
    return place


def credential(token: str = "from-the-plugin", *, lives: timedelta | None = timedelta(minutes=15)) -> str:
    """Return what a plugin prints."""
    status = {"token": token}
    if lives is not None:
        status["expirationTimestamp"] = (datetime.now(UTC) + lives).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def printing(folder: Path, text: str, *, name: str = "plugin") -> Path:
    """Write a program that prints a text and counts its runs in the file `runs`."""
    return program(folder, f"open({str(folder / 'runs')!r}, 'a').write('x'); print({text!r})", name=name)


def runs(folder: Path) -> int:
    """Return how often the program ran."""
    place = folder / "runs"
    return len(place.read_text()) if place.exists() else 0
