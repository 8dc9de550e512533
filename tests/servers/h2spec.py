"""h2spec, which tries every rule of HTTP/2 on a server: a Go program, built once and kept in the cache outside the
work tree under the digest of its pins in `h2spec_module/`.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.servers import clients, network
from tests.servers.parts import MissingPartError, cache

_MODULE = Path(__file__).with_name("h2spec_module")
_PACKAGE = "github.com/summerwind/h2spec/cmd/h2spec"
_BUILD_S = 900


def h2spec() -> Path:
    """Return the program; raises MissingPartError where it can be neither found nor built."""
    pins = b"".join((_MODULE / name).read_bytes() for name in ("go.mod", "go.sum"))
    place = cache() / f"h2spec-{hashlib.sha256(pins).hexdigest()[:16]}" / "h2spec"
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once build it once
        if not place.exists():
            _build(place)
    return place


def _build(place: Path) -> None:
    new = place.with_name("h2spec.new")
    go = shutil.which("go") or str(clients.go())
    variables = {**os.environ, "GOWORK": "off", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
    command = network.outside(go, "build", *flags, "-o", str(new), _PACKAGE)
    try:
        subprocess.run(
            command, cwd=_MODULE, env=variables, capture_output=True, text=True, check=True, timeout=_BUILD_S
        )
    except subprocess.CalledProcessError as error:
        raise MissingPartError(f"go build of h2spec failed: {error.stderr[-500:]}") from error
    new.rename(place)
