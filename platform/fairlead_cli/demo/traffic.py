"""Load generator of the demo: sends real images to a service through the gateway until SIGTERM, as its own process.

    python -m fairlead_cli.demo.traffic --gateway 127.0.0.1:8090 --service default/digits --images FILE --log FILE
        [--labels-to http://127.0.0.1:8080 --token-file FILE --label-counts FILE]

One thread per protocol, each at a third of `--rate`. A line of JSON per request goes to `--log`: `{"at", "ended_at",
"protocol", "revision", "ok", "message", "label", "truth"}`, times in Unix seconds. A thread that falls behind skips
requests, since a catch-up burst would not look like its users. With `--labels-to`, the right digit of each answered
image goes to the control plane seconds later. On SIGTERM it waits for pending requests, writes them, sends the labels
that are left, and exits 0.
"""

import argparse
import json
import queue
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairlead_cli.client import Client
from fairlead_cli.config import Access
from fairlead_cli.demo.labels import SCORED_OUTPUT, LabelSender
from fairlead_cli.demo.senders import SENDERS, Sender, Target

_FLUSH_EVERY_S = 0.2

_Label = Callable[[str, int], None]
"""Receives the id of an answered request and its right digit."""


@dataclass(frozen=True, slots=True)
class _Work:
    """Work of one thread: one image every `pause_s`."""

    protocol: str
    sender: Sender
    images: "np.ndarray[Any, Any]"
    labels: "np.ndarray[Any, Any]"
    pause_s: float
    label: _Label


def main() -> None:
    """Send until SIGTERM or SIGINT."""
    options = _parse()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    held_out = np.load(options.images)
    images, labels = held_out["images"].astype(np.float32), held_out["labels"]
    namespace, _, service = options.service.partition("/")
    target = Target(options.gateway, namespace, service, (SCORED_OUTPUT,) if options.labels_to else ())
    records: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    broken: list[Exception] = []

    def send_all(number: int, protocol: str, label: _Label) -> None:
        try:
            sender = SENDERS[protocol](target)
            order = np.random.default_rng(number).permutation(len(images))
            work = _Work(protocol, sender, images[order], labels[order], len(SENDERS) / options.rate, label)
            _send_paced(work, records, stop)
        except Exception as error:  # the other threads must not go on after a failure
            broken.append(error)
            stop.set()

    with _labelling(options, namespace, service) as label, options.log.open("w", encoding="utf-8") as log:
        threads = [threading.Thread(target=send_all, args=(*each, label), name=each[1]) for each in enumerate(SENDERS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(_FLUSH_EVERY_S)
            _write(records, log)
        _write(records, log)
    if broken:
        raise broken[0]


@contextmanager
def _labelling(options: argparse.Namespace, namespace: str, service: str) -> Iterator[_Label]:
    """Yield what sends a label where `--labels-to` is given, and else does nothing; on exit all that wait are sent."""
    if not options.labels_to:
        yield lambda _request_id, _digit: None
        return
    token = options.token_file.read_text(encoding="utf-8").strip()
    with Client(Access(options.labels_to, token)) as client:
        sender = LabelSender(client, namespace, service)
        sender.start()
        try:
            yield sender.add
        finally:
            sender.close().write(options.label_counts)


def _send_paced(work: "_Work", records: "queue.SimpleQueue[dict[str, Any]]", stop: threading.Event) -> None:
    number = 0
    due = time.monotonic()
    while not stop.wait(max(0.0, due - time.monotonic())):
        index = number % len(work.images)
        at = time.time()
        request_id = str(uuid.uuid4())
        answer = work.sender.send(work.images[index], request_id)
        if answer.label is not None:
            work.label(request_id, int(work.labels[index]))
        records.put(
            {
                "at": at,
                "ended_at": time.time(),
                "protocol": work.protocol,
                "revision": answer.revision,
                "ok": answer.label is not None,
                "message": answer.message,
                "label": answer.label,
                "truth": int(work.labels[index]),
            }
        )
        number += 1
        due = max(due + work.pause_s, time.monotonic())


def _write(records: "queue.SimpleQueue[dict[str, Any]]", log: Any) -> None:
    while not records.empty():
        log.write(json.dumps(records.get()) + "\n")
    log.flush()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fairlead_cli.demo.traffic")
    parser.add_argument("--gateway", required=True, help="HOST:PORT of the gateway")
    parser.add_argument("--service", required=True, help="NAMESPACE/NAME of the service")
    parser.add_argument("--images", required=True, type=Path, help="held-out.npz of the training run")
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--rate", type=float, default=150.0, help="total requests per second (150)")
    parser.add_argument("--labels-to", default="", metavar="URL", help="control plane that gets labels (none)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token for it")
    parser.add_argument("--label-counts", type=Path, metavar="FILE", help="file that gets the counts of labels")
    options = parser.parse_args()
    if options.labels_to and not (options.token_file and options.label_counts):
        parser.error("--labels-to needs --token-file and --label-counts")
    return options


if __name__ == "__main__":
    main()
