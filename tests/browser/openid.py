"""A real OpenID provider as a process: npm's `oidc-provider`, pinned by the lock file in `provider/`."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import network
from tests.servers.parts import MissingPartError

FOLDER = Path(__file__).parent / "provider"
CLIENT_ID, CLIENT_SECRET = "fairlead", "a-secret-of-the-tests"
_DEADLINE_S = 300


@dataclass(frozen=True, slots=True)
class Provider:
    """A running one; who signs in as NAME, with any password, is the account NAME."""

    issuer: str
    process: subprocess.Popen[str]

    def remove(self, account: str) -> None:
        """Remove an account; `say_groups` brings it back."""
        self._say(account, None)

    def say_groups(self, account: str, groups: list[str]) -> None:
        """Let the claim `groups` of an account say these from now on."""
        self._say(account, groups)

    def _say(self, account: str, groups: list[str] | None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([account, groups]) + "\n")
        self.process.stdin.flush()
        _next_line(self.process)


@contextmanager
def provider(*, back: str, signin: str) -> Iterator[Provider]:
    """Start it for a client that it leads back to `back`, and after sign-out to `signin`.

    Raises:
        MissingPartError: there is no Node.js.
    """
    node, npm = _program("node"), _program("npm")
    installed = FOLDER / "node_modules" / ".package-lock.json"  # written last
    if not installed.exists() or installed.stat().st_mtime < (FOLDER / "package-lock.json").stat().st_mtime:
        command = network.outside(npm, "ci", "--no-audit", "--no-fund", "--loglevel=error")
        subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, timeout=_DEADLINE_S)
    command = [node, "server.mjs", back, signin]
    with subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Provider(json.loads(_next_line(process))["issuer"], process)
        finally:
            process.kill()


def _next_line(process: subprocess.Popen[str]) -> str:
    """Return the next line that is JSON; what it warns of, such as keys that are for tests alone, is not."""
    assert process.stdout is not None
    line = next((line for line in process.stdout if line.startswith("{")), "")
    assert line, "the provider ended"
    return line


def _program(name: str) -> str:
    # Where the machine has none, the front end was built with one from PyPI, beside this Python.
    path = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if path is None:
        raise MissingPartError(f"{name} is not installed; `make setup` installs Node.js into .venv/")
    return path
