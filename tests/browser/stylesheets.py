"""The declarations of the style sheets, with what each selects; enough of CSS for the styles that are here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.browser.colours import STYLES, TOKENS

_VARIABLE = re.compile(r"var\(--([\w-]+)")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property of one rule; `selector` is the innermost, `around` what the rule is in, as `@media ...`."""

    file: str
    around: str
    selector: str
    name: str
    value: str

    @property
    def variables(self) -> frozenset[str]:
        """The custom properties that the value uses, without dashes."""
        return frozenset(_VARIABLE.findall(self.value))

    def __str__(self) -> str:
        return f"{self.file}: {self.selector} {{ {self.name}: {self.value} }}"


def declarations(text: str, file: str = "") -> Iterator[Declaration]:
    """Yield each declaration of a style sheet."""
    blocks: list[str] = []
    rest = ""
    for part in re.split(r"([{};])", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        if part == "{":
            blocks.append(" ".join(rest.split()))
        elif part in {";", "}"} and blocks and ":" in rest:
            name, _, value = rest.partition(":")
            yield Declaration(file, " ".join(blocks[:-1]), blocks[-1], name.strip(), " ".join(value.split()))
        if part == "}":
            blocks.pop()
        rest = "" if part in {"{", "}", ";"} else part


def everywhere() -> list[Declaration]:
    """Return the declarations of all style sheets but the tokens."""
    files = [each for each in sorted(STYLES.glob("*.css")) if each != TOKENS]
    return [declaration for each in files for declaration in declarations(each.read_text(), each.name)]


def resolved(variables: frozenset[str], among: list[Declaration]) -> set[str]:
    """Return the custom properties that these lead to, through those that a rule sets, as `--tone`."""
    found: set[str] = set()
    ahead = set(variables)
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= {each for one in among if one.name == f"--{name}" for each in one.variables} - found
    return found
