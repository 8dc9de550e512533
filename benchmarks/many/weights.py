"""How soon a change of weight is in force: from the order to the first answer by the other revision.

    python -m benchmarks.many.weights [--services 1000] [--changes 40]

Starts `fairlead up` with one service of two revisions, and orders of its local cluster all requests to the one, then to
the other, again and again; one client asks without a pause. Then the same beside many services, which are stopped: they
have routes and scopes, and no replica.
"""

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from benchmarks.many.fleet import Fleet, fleet
from benchmarks.many.requests import BODY
from fairlead_cli.demo.story import NAMESPACE
from fairlead_cli.output.waiting import poll_until
from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.local.documents import order_from_json
from integrations.clusters.local.driver import LocalDriver
from integrations.clusters.local.files import DESIRED_SCHEMA, Layout, read_json

_SERVICE, _READY_S, _IN_FORCE_S = "weights", 60.0, 10.0


class Weights:
    """The service whose weights change."""

    def __init__(self, cluster: Path, gateway: str, like: DesiredRevision) -> None:
        self._driver = LocalDriver(cluster)
        self._client = http.client.HTTPConnection(gateway, timeout=30)
        self._generation = 0
        names = f"{_SERVICE}-00001", f"{_SERVICE}-00002"
        self._revisions = [replace(like, name=name, model_name=_SERVICE) for name in names]

    def begin(self) -> None:
        """Wait until both revisions serve."""
        for turn in range(2):
            self._order(turn)
            name = self._revisions[turn].name
            poll_until(self._answers, lambda seen, name=name: seen == name, timeout_s=_READY_S, every_s=0.1, what=name)

    def changes(self, count: int) -> Iterator[float]:
        """Yield the milliseconds of each change."""
        for turn in range(count):
            began = time.monotonic()
            self._order(turn % 2)
            while self._answers() != self._revisions[turn % 2].name:
                if time.monotonic() - began > _IN_FORCE_S:
                    raise TimeoutError(f"a weight was not in force within {_IN_FORCE_S:g} s")
            yield 1000 * (time.monotonic() - began)

    def close(self) -> None:
        self._client.close()

    def _order(self, turn: int) -> None:
        """Send all requests to one of the two."""
        self._generation += 1
        revisions = [replace(each, weight_percent=0) for each in self._revisions]
        revisions[turn] = replace(revisions[turn], weight_percent=100)
        self._driver.apply(Desired(NAMESPACE, _SERVICE, self._generation, tuple(revisions)))

    def _answers(self) -> str:
        """Return the revision that answers a request."""
        headers = {"content-type": "application/json"}
        url = f"/serving/{NAMESPACE}/{_SERVICE}/v2/models/{_SERVICE}/infer"
        self._client.request("POST", url, body=json.dumps(BODY), headers=headers)
        answer = self._client.getresponse()
        answer.read()
        return answer.headers.get("fairlead-revision", "")


def add_stopped(cluster: Path, like: DesiredRevision, count: int) -> None:
    """Order so many services that are stopped."""
    driver = LocalDriver(cluster)
    for number in range(count):
        name = f"stopped-{number:04}"
        revision = replace(like, name=f"{name}-00001", model_name=name, replicas=0, weight_percent=100)
        driver.apply(Desired(NAMESPACE, name, 1, (revision,)))


def served(running: Fleet) -> tuple[Path, DesiredRevision]:
    """Return the cluster's folder and a revision that it serves."""
    running.serve(1)
    layout = Layout(running.folder / "cluster")
    order = order_from_json(read_json(layout.desired_file(NAMESPACE, running.names[0]), DESIRED_SCHEMA))
    return layout.cluster, order.desired.revisions[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, default=1000, help="how many others, 1000 by default")
    parser.add_argument("--changes", type=int, default=40, help="how many changes, 40 by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-weights-") as folder, fleet(Path(folder)) as running:
        cluster, like = served(running)
        with closing(Weights(cluster, running.gateway, like)) as weights:
            weights.begin()
            _say("alone", list(weights.changes(options.changes)))
            add_stopped(cluster, like, options.services)
            list(weights.changes(2))
            _say(f"beside {options.services}", list(weights.changes(options.changes)))


def _say(what: str, took_ms: list[float]) -> None:
    print(f"{what:>20}  median {statistics.median(took_ms):.0f} ms, worst {max(took_ms):.0f} ms", file=sys.stderr)


if __name__ == "__main__":
    main()
