"""Makes the pictures of `docs/images/` anew, from the scenes that the tests look at.

Usage: python -m tests.browser.screenshots
"""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main([str(Path(__file__).with_name("pictures.py")), "-q", "-p", "no:cacheprovider"]))
