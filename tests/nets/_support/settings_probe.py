"""Prints the settings of a process, a line each; its own process, since that of the tests has settings of its own."""

import os
import re
import sys
from importlib import import_module
from importlib.util import find_spec

OF_THE_MACHINE = {"ROOT", "STATICFILES_DIRS"}
"""Where the work tree is, and whether its front end is built."""
_PROCESS = re.compile(r"\btest-\d+\b")
_OURS = re.compile(r"'(?:[a-z_]+\.)+(\w+)'")


def main() -> None:
    """Print each setting with its type; modules of ours are left out of dotted paths."""
    module = import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    for name, value in sorted(vars(module).items()):
        if name.isupper() and name not in OF_THE_MACHINE:
            text = _PROCESS.sub("test-PID", repr(value))
            sys.stdout.write(f"{name} {type(value).__name__} {_OURS.sub(_without_module, text)}\n")


def _without_module(found: re.Match[str]) -> str:
    """Return a dotted path without its module where that is ours; `accounts.User` is no path but a model."""
    path = found[0].strip("'")
    module = path.rpartition(".")[0]
    spec = find_spec(path.partition(".")[0])
    is_ours = spec is not None and "site-packages" not in str(spec.origin)
    is_model = module.count(".") == 0 and found[1][:1].isupper()
    return f"'...{found[1]}'" if is_ours and not is_model else found[0]


if __name__ == "__main__":
    main()
