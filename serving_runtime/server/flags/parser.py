"""Parser of command lines, apart from their flags, so that a command starts without what the server imports."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, and exits with 1."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}; see --help\n")
