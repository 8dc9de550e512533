"""Fairlead's own commands on another database than the tests'."""

import os
import subprocess
import sys


def django(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a management command on the database at a URL, and return how it ended."""
    variables = os.environ | {"FAIRLEAD_DATABASE_URL": url}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
