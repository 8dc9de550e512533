"""Provenance: an in-toto statement with SLSA's predicate (v1), which says what a release was built of, and how.

It has no times and no names of machines: a further build of the commit has the same statement.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from releases.errors import ReleaseError

NAME = "provenance.intoto.json"
STATEMENT, PREDICATE = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://fairlead.dev/release/v1"
BUILDER = "https://fairlead.dev/release/make"


@dataclass(frozen=True, slots=True)
class Build:
    """What decides about a release's bytes.

    Attributes:
        commit: 40 hex digits.
        registry: where its images are published.
        targets: the images that it names.
        tools: versions by name.
        materials: SHA-256 in hex of each file of the commit that pins what is built, by its path.
    """

    commit: str
    version: str
    registry: str
    targets: tuple[str, ...]
    tools: Mapping[str, str]
    materials: Mapping[str, str]


def statement(build: Build, sums: Mapping[str, str]) -> bytes:
    """Return the statement about files.

    Args:
        sums: SHA-256 in hex by file name.
    """
    pinned = [{"uri": path, "digest": {"sha256": digest}} for path, digest in sorted(build.materials.items())]
    definition = {
        "buildType": BUILD_TYPE,
        "externalParameters": {"version": build.version, "registry": build.registry, "images": list(build.targets)},
        "internalParameters": dict(build.tools),
        "resolvedDependencies": [{"uri": "git:fairlead", "digest": {"gitCommit": build.commit}}, *pinned],
    }
    made = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sums[name]}} for name in sorted(sums)],
        "predicateType": PREDICATE,
        "predicate": {"buildDefinition": definition, "runDetails": {"builder": {"id": BUILDER}}},
    }
    return json.dumps(made, indent=1, sort_keys=True).encode()


def read(document: Any) -> tuple[Build, dict[str, str]]:
    """Return what a statement says; raises ReleaseError where it is none of a release of Fairlead."""
    try:
        kinds = document["_type"], document["predicateType"], document["predicate"]["buildDefinition"]["buildType"]
        if kinds != (STATEMENT, PREDICATE, BUILD_TYPE):
            raise ValueError(kinds)
        subjects = [(each["name"], each["digest"]["sha256"]) for each in document["subject"]]
        definition = document["predicate"]["buildDefinition"]
        given, (git, *pinned) = definition["externalParameters"], definition["resolvedDependencies"]
        build = Build(
            commit=_text(git["digest"]["gitCommit"]),
            version=_text(given["version"]),
            registry=_text(given["registry"]),
            targets=tuple(_text(each) for each in given["images"]),
            tools={_text(name): _text(each) for name, each in definition["internalParameters"].items()},
            materials={_text(each["uri"]): _text(each["digest"]["sha256"]) for each in pinned},
        )
        sums = {_text(name): _text(digest) for name, digest in subjects}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReleaseError(f"{NAME} is no provenance of a release of Fairlead: fetch the release again") from error
    if len(sums) != len(subjects):
        raise ReleaseError(f"{NAME} names a file twice: fetch the release again")
    return build, sums


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
