"""Command `pool-fetcher`: fetches models for the runtimes of a model pool, outside of their sandbox.

Runs until SIGTERM; exit 0, or 1 where it cannot start.
"""

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from serving_runtime.artifacts.download import Patience
from serving_runtime.pools.catalog import Catalog, Folder
from serving_runtime.pools.config_maps import ConfigMapCatalog
from serving_runtime.pools.fetcher import Fetcher, FetcherSettings
from serving_runtime.pools.origins import Registry
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import boolean, positive
from serving_runtime.shared import json_log

logger = logging.getLogger(__name__)

_LABEL, _PREFIX = re.compile(r"[a-z0-9][a-z0-9-]{0,62}"), re.compile(r"[a-z0-9][a-z0-9.-]{0,200}")


def main(arguments: Sequence[str]) -> int:
    """Run `pool-fetcher`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    settings = FetcherSettings(
        catalog=found.catalog or found.catalog_config_maps,
        cache=found.cache,
        cache_max_bytes=found.cache_max_bytes,
        concurrency=found.fetch_concurrency,
        stall_s=found.fetch_stall_secs,
        patience=Patience(tries=found.fetch_tries, longest_s=4.0, deadline_s=600.0),
        registry=Registry(found.registry, found.token_file, found.certificate_authority),
        with_code=found.allow_code_files,
    )
    handler = logging.StreamHandler()
    if json_log.is_wanted(os.environ):
        handler.setFormatter(json_log.JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("fairlead-serve pool-fetcher: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        return asyncio.run(_run(settings, found.socket))
    except OSError as error:
        sys.stderr.write(f"fairlead-serve pool-fetcher: it cannot start: {error}\n")
        return 1


async def _run(settings: FetcherSettings, socket: Path) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    fetcher = Fetcher(settings)
    await fetcher.start(socket)
    await stop.wait()
    await fetcher.close()
    logger.info("stopped")
    logging.shutdown()
    os._exit(0)  # a store that does not answer may hold threads for minutes


def _parser() -> Parser:
    parser = Parser(
        prog="fairlead-serve pool-fetcher", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--catalog", type=_folder, metavar="DIR", help="folder with one JSON document for each model")
    source.add_argument(
        "--catalog-config-maps",
        type=_config_maps,
        metavar="NAMESPACE/PREFIX",
        help="ConfigMaps of the pod's cluster with the same documents, in place of a folder",
    )
    parser.add_argument(
        "--cache", type=Path, required=True, metavar="DIR", help="folder for fetched models, which runtimes read"
    )
    parser.add_argument(
        "--socket", type=Path, required=True, metavar="PATH", help="Unix socket to listen on for runtimes"
    )
    parser.add_argument(
        "--cache-max-bytes", type=positive, default=100 << 30, metavar="N", help="maximum size of the cache (100 GiB)"
    )
    parser.add_argument(
        "--fetch-concurrency",
        type=positive,
        default=8,
        metavar="N",
        help="number of models that are fetched at the same time, half of them from one store (8)",
    )
    parser.add_argument(
        "--fetch-stall-secs",
        type=positive,
        default=30,
        metavar="N",
        help="seconds without a byte after which requests for a model fail (30)",
    )
    parser.add_argument(
        "--fetch-tries", type=positive, default=4, metavar="N", help="maximum consecutive failures of a fetch (4)"
    )
    parser.add_argument(
        "--registry", default="", metavar="URL", help="http(s):// prefix of addresses that get the token (none)"
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token, sent only to --registry")
    parser.add_argument(
        "--certificate-authority", type=Path, metavar="FILE", help="file with the certificate authority of --registry"
    )
    parser.add_argument(
        "--allow-code-files",
        type=boolean,
        default=False,
        metavar="BOOL",
        help="gives runtimes files that an interpreter or the loader could run too (false)",
    )
    return parser


def _folder(text: str) -> Catalog:
    return Folder(Path(text))


def _config_maps(text: str) -> Catalog:
    namespace, _, prefix = text.partition("/")
    if not _LABEL.fullmatch(namespace) or not _PREFIX.fullmatch(prefix):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAMESPACE/PREFIX of ConfigMaps")
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise argparse.ArgumentTypeError("KUBERNETES_SERVICE_HOST is not set: it reads ConfigMaps in a pod only")
    at = f"[{host}]" if ":" in host else host
    return ConfigMapCatalog(namespace, prefix, f"https://{at}:{port}")
