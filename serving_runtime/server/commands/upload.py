"""Command `upload`: sends a folder to the control plane as one tar archive, with the pod's token.

It runs in a container of its own after the one that opened a model, which has no token. Exit 0, or 2 when the folder
cannot be sent.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from serving_runtime.artifacts.upload import bring
from serving_runtime.common.errors import ServingError
from serving_runtime.server.flags.parser import Parser


def main(arguments: Sequence[str]) -> int:
    """Run `upload`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    try:
        bring(found.folder, found.to, found.token_file, found.certificate_authority)
    except (ServingError, OSError) as error:
        sys.stderr.write(f"fairlead-serve upload: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="fairlead-serve upload", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder whose files to send")
    parser.add_argument("--to", required=True, metavar="URL", help="http(s):// URL that accepts a tar archive by PUT")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token for that URL")
    parser.add_argument(
        "--certificate-authority", type=Path, metavar="FILE", help="file with the certificate authority of the server"
    )
    return parser
