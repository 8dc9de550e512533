"""Command line of releases: `make release` and `make verify-release` call `python -m releases make` and `verify`."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from releases import Order, ReleaseError, make_release, rebuild_release, signatures, verify_release
from releases.build import REGISTRY, TARGETS

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns 1 with one sentence on the error output where it is refused."""
    given = _parser().parse_args(arguments)
    try:
        (_make if given.command == "make" else _verify)(given)
    except ReleaseError as error:
        sys.stderr.write(f"{error}.\n")
        return 1
    return 0


def _make(given: argparse.Namespace) -> None:
    key = signatures.private_key(given.key) if given.key else None
    try:
        digests = given.digests.read_text() if given.digests else None
    except (OSError, UnicodeDecodeError) as error:
        raise ReleaseError(f"IMAGE_DIGESTS {given.digests} cannot be read: write it by docker/digests.py") from error
    order = Order(given.registry, tuple(given.images.split()), digests, tuple(shlex.split(given.image_options)))
    lacking = make_release(given.root, given.out, order, key)
    sys.stdout.write("".join(f"{line}\n" for line in lacking))
    sys.stdout.write(f"{given.out} has a release of {len(list(given.out.iterdir()))} files\n")


def _verify(given: argparse.Namespace) -> None:
    key = signatures.public_key(given.public_key) if given.public_key else None
    described = verify_release(given.folder, key)
    if key is None:
        sys.stdout.write("signatures not verified: RELEASE_PUBLIC_KEY names no key, so that anybody may have made it\n")
    signed = "" if key is None else f", signed by the key {signatures.key_id(key)[:16]}"
    sys.stdout.write(f"{given.folder} is Fairlead {described.version} of the commit {described.commit}{signed}\n")
    if given.rebuild:
        count = rebuild_release(given.folder, given.root, described)
        sys.stdout.write(f"built again: {count} files are equal byte by byte\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m releases", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the clone (this one)")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="build a release of the present commit")
    make.add_argument("--out", type=Path, required=True, help="a folder that is not there, or empty")
    make.add_argument("--key", type=Path, help="PEM of an Ed25519 private key, which signs")
    make.add_argument("--registry", default=REGISTRY, help="where images are published")
    make.add_argument("--images", default=" ".join(TARGETS), help="targets of docker/Dockerfile")
    make.add_argument("--digests", type=Path, help="digests of pushed images, by docker/digests.py; builds none here")
    make.add_argument("--image-options", default="", help="more options for the build of images")
    verify = commands.add_parser("verify", help="verify the files of a release")
    verify.add_argument("folder", type=Path)
    verify.add_argument("--public-key", type=Path, help="PEM of the Ed25519 public key that has to have signed it")
    verify.add_argument("--rebuild", action="store_true", help="build it again, and compare")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
