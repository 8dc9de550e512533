"""Estimators that do to their process what a damaged file does to compiled code."""

import os
import signal
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
