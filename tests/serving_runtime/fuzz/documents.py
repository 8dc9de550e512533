"""What is fuzzed of the control plane: files that people send, as YAML on pages and as JSON over the API.

A FairleadError, or DRF's error for a body that is no JSON, is how the control plane refuses. Any other error is a
finding, and so is a file that takes more than a second, or that is taken and cannot be stored.
"""

import contextlib
import dataclasses
import io
import json
import time
from collections.abc import Callable
from typing import Any

from rest_framework.exceptions import ParseError

from clusters.domain.cluster_file import parse_cluster
from common.errors import FairleadError
from common.files.editor.text import document_of, line_of, text_of
from common.http.parsers import StrictJSONParser, check
from deployments.domain.service_file import parse_service
from tests.serving_runtime.fuzz.finding import FindingError

_MOST_S = 1.0


def service_file(data: bytes) -> None:
    """Read a service file; the first byte says whether as YAML or as JSON."""
    _read(data, parse_service)


def cluster_file(data: bytes) -> None:
    """Read a cluster file, the kubeconfig in it too."""
    _read(data, parse_cluster)


FILES: dict[str, Callable[[bytes], None]] = {"service-file": service_file, "cluster-file": cluster_file}


def _read(data: bytes, parse: Callable[[object], Any]) -> None:
    if (took_s := _seconds(data, parse)) > _MOST_S:
        took_s = min(took_s, _seconds(data, parse))  # not the first import, nor the collection of others' garbage
    if took_s > _MOST_S:
        raise FindingError(f"a file of {len(data)} bytes took {took_s:.1f} s")


def _seconds(data: bytes, parse: Callable[[object], Any]) -> float:
    began_s = time.thread_time()
    with contextlib.suppress(FairleadError, ParseError):
        _parse(data, parse)
    return time.thread_time() - began_s


def _parse(data: bytes, parse: Callable[[object], Any]) -> None:
    if data[:1] < b"\x80":
        text = data[1:].decode("utf-8", "replace")
        document = document_of(text)
    else:
        document = StrictJSONParser().parse(io.BytesIO(data[1:]), parser_context={"encoding": "utf-8"})
        text = text_of(document)
    try:
        found = parse(document)
    except FairleadError as error:
        line_of(text, error.field or "")
        raise
    check(json.loads(json.dumps(document, allow_nan=False)))
    dataclasses.asdict(found)
