"""Driver of an unreachable cluster: every call to it fails at once, so that no caller waits for a timeout."""

from collections.abc import Callable
from typing import NoReturn, cast

from common.errors import Unavailable
from integrations.clusters.base import ClusterDriver


class _Away:
    def __init__(self, problem: str) -> None:
        self._problem = problem

    def mark(self, _namespace: str, _service: str) -> None:
        """Return None: nothing is known of its services."""

    def __getattr__(self, verb: str) -> Callable[..., NoReturn]:
        def refuse(*_: object, **__: object) -> NoReturn:
            raise Unavailable(self._problem)

        return refuse


def away(problem: str) -> ClusterDriver:
    """Return a driver whose calls to the cluster raise `common.errors.Unavailable` with the sentence `problem`."""
    return cast(ClusterDriver, _Away(problem))
