"""Estimators that do to their process what a damaged file does to compiled code."""

import contextlib
import os
import signal
import socket
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator


class Ending(BaseEstimator):
    """Ends the process that asks it."""

    n_features_in_ = 2

    def predict(self, rows: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)
        return rows


class Endless(BaseEstimator):
    """Never answers."""

    n_features_in_ = 2

    def predict(self, rows: Any) -> Any:
        while True:
            pass


class Greedy(BaseEstimator):
    """Takes all the memory that it gets."""

    n_features_in_ = 2

    def predict(self, rows: Any) -> Any:
        return bytearray(1 << 44)


class Curious(BaseEstimator):
    """Tries what its process may do, and says what it came to."""

    n_features_in_ = 2

    def __init__(self, secret: str = "", port: int = 0, own: str = "") -> None:
        self.secret = secret
        self.port = port
        self.own = own

    def predict(self, rows: Any) -> Any:
        reached = []
        for name, attempt in {
            "secret": lambda: Path(self.secret).read_text(),
            "folder": lambda: list(Path(self.secret).parent.iterdir()),
            "write": lambda: Path(self.own, "made").touch(),
            "server": lambda: socket.create_connection(("127.0.0.1", self.port), 5).close(),
            "listen": lambda: socket.create_server(("127.0.0.1", 0)).close(),
            "socket": lambda: socket.socket(socket.AF_UNIX).close(),
            "signal": lambda: os.kill(os.getppid(), 0),
        }.items():
            with contextlib.suppress(OSError):
                attempt()
                reached.append(name)
        threads = len(list(Path("/proc/self/task").iterdir()))  # those from before could do what they like
        raise ValueError(f"it reached {reached} in {threads} thread")
