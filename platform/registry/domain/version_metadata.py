"""Metadata of a new version: description, tags, lineage, required compatibility. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidInput
from common.identifiers import check_alias
from registry.domain import tags
from registry.domain.lineage import Lineage

MAX_DESCRIPTION = 10_000
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Particulars:
    """Metadata stored with a new version.

    Attributes:
        description: Markdown, kept as it is.
        compatible_with: a version of the same model (`@alias` or a number) whose clients must be able to use this one;
            None leaves it to the model's setting, an empty text disables the check.
    """

    lineage: Lineage = field(default_factory=Lineage)
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    compatible_with: str | None = None

    def check(self) -> None:
        """Raise InvalidInput where a part is invalid."""
        self.lineage.check()
        tags.changed({}, self.tags)
        check_description(self.description)
        check_reference(self.compatible_with or "")


def particulars_of_json(document: Mapping[str, Any], *, source_uri: str) -> Particulars:
    """Return particulars from their `dataclasses.asdict`, with the source of the files."""
    lineage = Lineage(**{**document["lineage"], "source_uri": source_uri})
    return Particulars(**{**document, "lineage": lineage})


def check_description(text: str) -> str:
    """Return `text` if it is a valid description."""
    if len(text) > MAX_DESCRIPTION or "\0" in text:
        raise InvalidInput(
            f"description has {len(text)} characters; at most {MAX_DESCRIPTION} are kept, without zeros",
            field="description",
        )
    return text


def check_reference(text: str) -> str:
    """Return `text` if it names a version within a model, or is empty."""
    if text.startswith("@"):
        check_alias(text.removeprefix("@"), field="compatible_with")
    elif text and not _NUMBER.fullmatch(text):
        raise InvalidInput(
            f"compatible_with is {text[:80]!r}; expected @ALIAS or the number of a version", field="compatible_with"
        )
    return text
