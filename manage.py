#!/usr/bin/env python
"""Django's command line; puts the source root `platform/` on the path first."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run the management command named on the command line."""
    # At the end: `platform` the folder must never come before `platform` the standard library's module.
    sys.path.append(str(Path(__file__).resolve().parent / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
