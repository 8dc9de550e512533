"""Another client, in a process of its own: asks for health and an inference all the time, and keeps how long each took.

python -m benchmarks.flood.probe PORT < (a line ends it) > {"health_s": [...], "infer_s": [...], "failures": n}
"""

import http.client
import json
import select
import sys
import time

from benchmarks.flood.attacks import MODEL

_EVERY_S = 0.01
_BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]})


def main() -> int:
    """Ask until a line comes on standard input."""
    asks = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    found: dict[str, list[float]] = {"health_s": [], "infer_s": []}
    failures = 0
    while not select.select([sys.stdin], [], [], _EVERY_S)[0]:
        for name, method, path, body in (
            ("health_s", "GET", "/v2/health/live", None),
            ("infer_s", "POST", f"/v2/models/{MODEL}/infer", _BODY),
        ):
            began = time.perf_counter()
            try:
                asks.request(method, path, body)
                answer = asks.getresponse()
                answer.read()
                failures += answer.status != 200
            except (OSError, http.client.HTTPException):
                failures += 1
                asks.close()
            found[name].append(time.perf_counter() - began)
    sys.stdout.write(json.dumps({**found, "failures": failures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
