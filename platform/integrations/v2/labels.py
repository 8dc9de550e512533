"""Class labels of an artifact: `label_filename` of its outputs (Triton: model configuration).

Read for pages that show an answer. What the runtime would refuse has no labels here: the runtime reports it when it
loads the model. Labels that an ensemble has from the models of its steps are left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from common.errors import InvalidInput, NotFound
from integrations.clusters.local.model_config import tokens_of, top_level
from serving_runtime.shared.model_files import ensemble_in

_CONFIG = "config.pbtxt"
_MOST_BYTES = 1 << 20
"""Size limit of a configuration, and of all label files of a model; ImageNet's 21,841 classes have half of it."""

_MOST_KEPT = 16
_MOST_CHARACTERS = 200  # of a label
_ESCAPED = re.compile(r"\\(.)")

Labels = Mapping[str, Sequence[str]]
"""By output: the label of each class, in order."""


def labels_in(artifact: Path) -> Labels:
    """Return the output labels of the model in a folder whose files never change; empty without a folder."""
    try:
        return _labels_in(artifact)
    except NotFound:
        return {}


def label_files(config: str) -> dict[str, str]:
    """Return the label files that a config.pbtxt names, by output; raises InvalidInput for invalid protobuf text."""
    found = {}
    for field, source in top_level(config):
        if field != "output":
            continue
        for said in _messages(source):
            if said.get("name") and said.get("label_filename"):
                found[said["name"]] = said["label_filename"]
    return found


@lru_cache(maxsize=_MOST_KEPT)
def _labels_in(artifact: Path) -> Labels:
    """Return the labels; raises NotFound, which is not kept: the files may be sent again."""
    if not artifact.is_dir():
        raise NotFound(f"no artifact in {artifact}")
    files = (path.relative_to(artifact).as_posix() for path in artifact.rglob("*") if path.is_file())
    model = artifact / ensemble_in(files)
    try:
        named = label_files(_read(model / _CONFIG, model, _MOST_BYTES))
    except (InvalidInput, OSError, UnicodeDecodeError):
        return {}
    left = _MOST_BYTES
    found: dict[str, tuple[str, ...]] = {}
    for output, filename in named.items():
        try:
            text = _read(model / filename, model, left)
        except (InvalidInput, OSError, UnicodeDecodeError, ValueError):
            continue
        left -= len(text)
        lines = text.removesuffix("\n").split("\n")
        found[output] = tuple(line.rstrip("\r")[:_MOST_CHARACTERS] for line in lines)
    return found


def _read(file: Path, folder: Path, most_bytes: int) -> str:
    """Return a file's text; raises InvalidInput for one that is outside of its folder or has more bytes."""
    place = file.resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_file():
        raise InvalidInput(f"{file} is no file in {folder}")
    with place.open("rb") as content:
        found = content.read(most_bytes + 1)
    if len(found) > most_bytes:
        raise InvalidInput(f"{file} has more than {most_bytes} bytes")
    return found.decode()


def _messages(source: str) -> Iterator[dict[str, str]]:
    """Yield the texts of each message in `field { … }` or `field [{ … }, { … }]`, by name."""
    depth, field = 0, ""
    said: dict[str, str] = {}
    for token in tokens_of(source):
        text = token.group()
        if text in ("{", "<"):
            depth += 1
            said = {} if depth == 1 else said
        elif text in ("}", ">"):
            depth -= 1
            if depth == 0:
                yield said
        elif token.lastgroup == "word":
            field = text
        elif token.lastgroup == "string" and depth == 1:
            said[field] = said.get(field, "") + _ESCAPED.sub(r"\1", text[1:-1])
