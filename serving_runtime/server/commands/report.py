"""Command `report`: sends what a server recorded into a folder to the control plane, with the pod's token.

It runs in a container of its own beside the one that opens a model, which has no token. A file stays until it is
accepted or refused; when the folder is full the server drops the oldest. On SIGTERM it drains the folder for a few
seconds at most. Exit 0, or 2 when the folder does not exist.
"""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from serving_runtime.server.flags.parser import Parser
from serving_runtime.shared import json_log
from serving_runtime.telemetry.log_settings import JSON, LogControl, LogSettings, quiet_clients
from serving_runtime.telemetry.tap.posting import HttpSink, RefusedError
from serving_runtime.telemetry.tap.sinks import SinkError
from serving_runtime.telemetry.tap.spool import Spool

logger = logging.getLogger(__name__)

_LOOK_S = 0.5
_LONGEST_PAUSE_S = 5.0
_CLOSE_S = 10.0
_ended = threading.Event()


def main(arguments: Sequence[str]) -> int:
    """Run `report`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    if json_log.is_wanted(os.environ):
        LogControl(LogSettings(log_format=JSON)).open()
    else:
        logging.basicConfig(format="fairlead-serve report: %(message)s", level=logging.INFO)
    quiet_clients()
    try:
        spool = Spool(found.folder)
    except OSError as error:
        sys.stderr.write(f"fairlead-serve report: {error}\n")
        return 2
    # A handler: where the main thread blocks the signal, a thread that a library has started would take it and end all.
    before = signal.signal(signal.SIGTERM, lambda *_: _ended.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # pods start it blocked
    try:
        report(
            spool,
            lambda: HttpSink(found.to, found.token_file, ca_file=found.certificate_authority, patience_s=0),
            _ends,
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    spool.close()
    return 0


def report(spool: Spool, opened: Callable[[], HttpSink], ends: Callable[[float], bool]) -> None:
    """Upload new files, and at the end the remaining ones, for a few seconds at most.

    Args:
        opened: opens the sink, which tries each batch once; may raise OSError, and is retried then.
        ends: waits for so many seconds, and returns whether the end came meanwhile.
    """
    sink: HttpSink | None = None
    pause_s, problem = _LOOK_S, ""
    deadline: float | None = None
    while True:
        try:
            sink = sink or opened()
            _send(spool, sink)
        except (SinkError, OSError) as error:
            if not problem:
                logger.warning("records wait until they are taken again: %s", error)
            problem, pause_s = str(error), min(2 * pause_s, _LONGEST_PAUSE_S)
        else:
            if problem:
                logger.info("records are taken again")
            problem, pause_s = "", _LOOK_S
        if deadline is None:
            deadline = time.monotonic() + _CLOSE_S if ends(pause_s) else None
        elif not problem or time.monotonic() >= deadline:
            break
        else:
            time.sleep(_LOOK_S)
    if sink is not None:
        sink.close()


def _ends(seconds: float) -> bool:
    return _ended.wait(seconds)


def _send(spool: Spool, sink: HttpSink) -> None:
    """Send each pending file; one that is permanently refused is dropped.

    Raises:
        SinkError: the receiver may accept them later.
        OSError: the folder cannot be read, or a file not be removed.
    """
    for name in spool.names():
        batch = spool.batch(name)
        if batch is None:
            logger.warning("a record is dropped: it is no file of at most 32 MiB")
        else:
            try:
                sink.send(batch)
            except RefusedError as error:
                logger.warning("records are dropped: %s", error)
        spool.remove(name)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="fairlead-serve report", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a payload tap's files")
    parser.add_argument(
        "--to", required=True, metavar="URL", help="http(s):// URL that accepts batches of CloudEvents by POST"
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token for that URL")
    parser.add_argument(
        "--certificate-authority", type=Path, metavar="FILE", help="file with the certificate authority of the server"
    )
    return parser
