"""Command `prepare`: lays out a stored model in a model repository before a server starts in the same pod.

The artifact is one model file, or one model's folder in Triton's layout, or an ensemble's with those of the models of
its steps beside it, which keep their names; the model gets its serving name and version, and fields of its
configuration are replaced. It is in a local folder (`--artifact`), or it is fetched (`--origin`, `--registry`), with or
without a cache that pods share. The request of a trial is fetched too (`--request-from`), so that the container which
opens the model has no token. Exit 0; 2 for a temporary failure; `REFUSED` when a retry cannot help, since the model
does not match the request.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from serving_runtime.artifacts.cache import Cache, CacheUnusableError
from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.fetch_artifact import INCOMING, Order, fetch
from serving_runtime.artifacts.layout import check, lay_out
from serving_runtime.artifacts.remotes import InterruptedTransferError, Remote
from serving_runtime.artifacts.small_file import read
from serving_runtime.artifacts.web import WebFile
from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import boolean

ALLOW_CODE_FILES = "FAIRLEAD_ALLOW_CODE_FILES"
"""An environment variable, which older runtimes ignore: an unknown flag would keep them from starting."""

REFUSED = 3
_MOST_REQUEST_BYTES = 64 << 20
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_Source = Callable[[argparse.Namespace], Sequence[Remote]]


class _RefusedError(ModelError):
    """The model does not match the request."""


def main(arguments: Sequence[str]) -> int:
    """Run `prepare`; returns the exit code."""
    parser = _parser()
    found = parser.parse_args(arguments[1:])
    if bool(found.request_from) != bool(found.request):
        parser.error("--request-from and --request go together")
    try:
        model = found.model_repository / found.name
        if not (found.artifact or found.origin or found.registry):
            raise ModelError("nothing says where the model is; give --artifact, --registry or --origin")
        if found.artifact is not None:
            check(found.artifact, found.digest)
            _lay_out(found, found.artifact, model)
        else:
            _fetch(found, model)
        if found.request_from:
            where = found.request_from, found.token_file, found.certificate_authority
            found.request.write_bytes(read(*where, _MOST_REQUEST_BYTES))
    except (ServingError, OSError) as error:
        _say(str(error))
        if found.termination_message is not None:
            found.termination_message.write_text(f"{error}\n", encoding="utf-8")
        return REFUSED if isinstance(error, _RefusedError) else 2
    return 0


def _parser() -> Parser:
    parser = Parser(prog="fairlead-serve prepare", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    source = parser.add_argument_group("source of the model (one of)").add_mutually_exclusive_group()
    source.add_argument("--artifact", type=Path, metavar="DIR", help="folder in which the model is stored")
    source.add_argument(
        "--registry", metavar="URL", help="http(s):// URL in the registry from which to fetch the model"
    )
    parser.add_argument("--digest", required=True, metavar="sha256:HEX", help="required digest of the model's files")
    parser.add_argument("--name", required=True, help="name under which to serve the model")
    parser.add_argument("--version", required=True, metavar="N", help="version under which to serve the model")
    parser.add_argument("--config", type=json.loads, default={}, metavar="JSON", help="ModelConfig fields to replace")
    parser.add_argument("--model-repository", type=Path, required=True, metavar="DIR", help="model repository to write")
    parser.add_argument(
        "--allow-code-files",
        type=boolean,
        default=os.environ.get(ALLOW_CODE_FILES, "true"),
        metavar="BOOL",
        help=f"lays out files that an interpreter or the loader could run too ({ALLOW_CODE_FILES}, true)",
    )
    parser.add_argument(
        "--origin", metavar="URI", help="http(s)://, s3:// or gs:// URI of the same files, tried before the registry"
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="file with the token, sent only to the control plane"
    )
    parser.add_argument(
        "--certificate-authority", type=Path, metavar="FILE", help="file with the certificate authority of the server"
    )
    parser.add_argument("--request-from", metavar="URL", help="http(s):// URL of a V2 request to fetch too")
    parser.add_argument("--request", type=Path, metavar="FILE.json", help="file for that request")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="cache of fetched models that pods share")
    parser.add_argument(
        "--cache-max-bytes", type=int, default=100 << 30, metavar="N", help="maximum size of the cache (100 GiB)"
    )
    parser.add_argument(
        "--fetch-tries", type=int, default=Patience().tries, metavar="N", help="maximum consecutive failures (8)"
    )
    parser.add_argument(
        "--termination-message", type=Path, metavar="FILE", help="file for the error message of a failure"
    )
    return parser


def _fetch(found: argparse.Namespace, model: Path) -> None:
    """Lay out the fetched artifact; the repository holds partial downloads until it is complete."""
    if not _DIGEST.fullmatch(found.digest):
        raise ModelError(f"--digest {found.digest!r} is not sha256:<64 hex digits>")
    place = found.model_repository / INCOMING
    try:
        folder = _brought(found, _origin if found.origin else _registry, place)
    except ModelError as error:
        if not (found.origin and found.registry):
            raise
        _say(f"{error}; taking the model from the registry")
        shutil.rmtree(place, ignore_errors=True)
        folder = _brought(found, _registry, place)
    _lay_out(found, folder, model, copy=os.link)
    shutil.rmtree(place)


def _lay_out(
    found: argparse.Namespace, folder: Path, model: Path, copy: Callable[[str, str], object] = shutil.copy2
) -> None:
    """Lay out the content of `folder`; _RefusedError where it does not match the request."""
    try:
        with_code: bool = found.allow_code_files
        lay_out(folder, model, version=found.version, config=found.config, with_code=with_code, copy=copy)
    except ModelError as error:
        raise _RefusedError(str(error)) from error


def _brought(found: argparse.Namespace, source: _Source, place: Path) -> Path:
    """Return the model's folder in `place`, from the cache where a usable one exists."""
    order = Order(found.digest, lambda: source(found), _say, Patience(tries=found.fetch_tries))
    folder = place / order.hex
    if found.cache is not None and not folder.is_dir():
        try:
            Cache(found.cache, found.cache_max_bytes).copy(order, folder)
        except CacheUnusableError as error:
            _say(f"the cache cannot be used, the model is fetched without it: {error}")
    return fetch(order, place)


def _registry(found: argparse.Namespace) -> Sequence[Remote]:
    return [WebFile(found.registry, found.token_file, found.certificate_authority)]


def _origin(found: argparse.Namespace) -> Sequence[Remote]:
    scheme = urlsplit(found.origin).scheme
    if scheme in ("http", "https"):
        return [WebFile(found.origin)]
    if scheme not in ("s3", "gs"):
        raise ModelError(f"--origin {found.origin} has another scheme than http, https, s3, gs")
    from serving_runtime.artifacts.buckets import objects_at  # noqa: PLC0415 - a library that is an extra

    try:
        return objects_at(found.origin)
    except InterruptedTransferError as error:
        raise ModelError(str(error)) from error


def _say(line: str) -> None:
    sys.stderr.write(f"fairlead-serve prepare: {line}\n")
    sys.stderr.flush()
