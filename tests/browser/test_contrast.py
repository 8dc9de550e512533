"""In both themes everything can be told from what it lies on: by the tokens, since no style has a colour of its own."""

import re
from collections.abc import Iterator

import pytest

from tests.browser import colours, stylesheets
from tests.browser.colours import FILLED, GROUNDS, LINES, MARKS, ON_FILLED, SHADES, STYLES, TEXT, THEMES, Theme
from tests.browser.stylesheets import Declaration, resolved

FRONTEND = STYLES.parent
ALL = stylesheets.everywhere()
TOKENS = set(colours.tokens("light"))
PAINT = re.compile(r"(-|^)(color|background|fill|stroke|border(-\w+)*|outline|shadow|text-decoration)$|^--")
WORDS = {
    *("none", "transparent", "currentcolor", "inherit", "solid", "dashed", "underline", "wavy", "inset", "collapse"),
    "repeating-linear-gradient",
}
"""What a declaration that paints may say beside tokens and lengths: no name of a colour."""
UNITS = re.compile(r"-?[\d.]+(px|rem|em|deg|ch|%)?")
IN_SCRIPTS = re.compile(
    r"[\"'`]#[0-9a-f]{3,8}[\"'`]|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch)\(\s*\d"
    r"|\b(fill|stroke|color|background)(Style)?\s*[:=]\s*[\"'`](?!none|transparent)",
    re.IGNORECASE,
)
IN_TEMPLATES = re.compile(
    r'\b(fill|stroke|color|bgcolor|stop-color)="(?!none"|currentColor"|var\(--)[^"]*"|\sstyle="[^"]*:[^"]*"'
)
NOT_SHOWN = {"picture-input.ts"}
"""What is drawn there is what a model gets."""


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_can_be_told_from_what_it_may_lie_on(theme: Theme) -> None:
    values = colours.tokens(theme)
    for colour, ground, least in colours.pairs():
        assert colours.contrast(values[colour], values[ground]) >= least, f"{colour} on {ground}"


@pytest.mark.parametrize("theme", THEMES)
def test_the_same_holds_without_colour_as_a_page_is_that_is_not_live_any_more(theme: Theme) -> None:
    values = {name: colours.grey(value) for name, value in colours.tokens(theme).items()}
    for colour, ground, least in colours.pairs():
        assert colours.contrast(values[colour], values[ground]) >= least, f"{colour} on {ground}"


def test_contrast_is_counted_as_wcag_does() -> None:
    assert colours.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colours.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert colours.contrast("#ff0000", "#0000ff") == pytest.approx(2.15, abs=0.005)


def test_every_token_has_a_role_and_a_value_in_both_themes() -> None:
    roles = [TEXT, GROUNDS, {ON_FILLED}, MARKS, LINES]
    assert set.union(*roles) == TOKENS
    assert sum(map(len, roles)) == len(TOKENS), "a token has two roles"
    of_theme = {True: set[str](), False: set[str]()}
    for each in stylesheets.declarations(colours.TOKENS.read_text()):
        is_colour = each.value.startswith("#") or "rgb" in each.value or each.name.lstrip("-") in SHADES
        if is_colour:
            of_theme["dark" in each.around].add(each.name.lstrip("-"))
    assert of_theme[False] == TOKENS | SHADES
    assert of_theme[True] == TOKENS | SHADES - {"veil"}


def test_themes_differ_in_the_tokens_alone() -> None:
    assert [str(each) for each in ALL if "prefers-color-scheme" in each.around] == []
    assert [str(each) for each in ALL if each.name.lstrip("-") in TOKENS] == []


def text_of(declaration: Declaration) -> bool:
    """Return whether the declaration gives a text its colour."""
    is_drawn = declaration.name == "fill" and re.search(r"\btext\b", declaration.selector)
    return declaration.name == "color" or bool(is_drawn)


def used(found: Iterator[Declaration] | list[Declaration]) -> Iterator[tuple[str, Declaration]]:
    """Yield each colour token that a declaration uses, through `--tone` and the like too."""
    for each in found:
        for name in resolved(each.variables, ALL) & (TOKENS | SHADES):
            yield name, each


def test_texts_have_colours_of_texts_and_lie_on_grounds() -> None:
    of_texts = [each for each in ALL if text_of(each)]
    assert len(of_texts) > 50
    # What a style itself writes between two words may be as faint as a line.
    wrong = [str(each) for name, each in used(of_texts) if name not in TEXT | {ON_FILLED} | written_between(each)]
    assert wrong == []
    filled = {(each.file, each.selector) for name, each in used(grounds()) if name in FILLED}
    on_filled = {(each.file, each.selector) for name, each in used(of_texts) if name == ON_FILLED}
    assert on_filled
    assert on_filled <= filled


def written_between(declaration: Declaration) -> set[str]:
    return LINES if declaration.selector.endswith("::before") else set()


def grounds() -> list[Declaration]:
    """Return what gives a background."""
    return [each for each in ALL if each.name in {"background", "background-color"}]


def test_a_rule_that_gives_a_text_and_its_ground_gives_a_pair_that_is_held() -> None:
    held = {(colour, ground) for colour, ground, least in colours.pairs() if least == colours.OF_TEXT}
    texts = {(each.file, each.around, each.selector): name for name, each in used([one for one in ALL if text_of(one)])}
    both = [
        (texts[key], name, str(each))
        for name, each in used(grounds())
        if (key := (each.file, each.around, each.selector)) in texts and "var(--wash)" not in each.value
    ]
    assert len(both) > 5
    assert [each for each in both if each[:2] not in held] == []


def test_no_style_has_a_colour_that_is_no_token() -> None:
    painting = [each for each in ALL if PAINT.search(each.name)]
    assert len(painting) > 200
    assert [str(each) for each in painting if not_of_tokens(each)] == []


def not_of_tokens(declaration: Declaration) -> set[str]:
    """Return the words of a declaration that may be colours."""
    of_rules = {each.name.lstrip("-") for each in ALL if each.name.startswith("--")}
    if unknown := declaration.variables - TOKENS - SHADES - of_rules - {"radius", "radius-l"}:
        return set(unknown)
    bare = re.sub(r"var\(--[\w-]+\)?|calc\(|[(),/]| - ", " ", declaration.value)
    return {word for word in bare.split() if word not in WORDS and not UNITS.fullmatch(word)}


def test_no_template_and_no_script_has_a_colour_that_is_no_token() -> None:
    templates, scripts = sorted((FRONTEND / "templates").rglob("*.html")), sorted((FRONTEND / "src").rglob("*.ts"))
    assert len(templates) > 50
    assert len(scripts) > 10
    assert [each.name for each in templates if IN_TEMPLATES.search(each.read_text())] == []
    assert [each.name for each in scripts if IN_SCRIPTS.search(each.read_text()) and each.name not in NOT_SHOWN] == []
    drawn = set(re.findall(r'\bof\("([\w-]+)"\)', (FRONTEND / "src/plots.ts").read_text()))
    assert drawn
    assert drawn <= TOKENS


@pytest.mark.parametrize(
    "style",
    [
        ".a { color: #123456; }",
        ".a { color: red; }",
        ".a { border-left: 1px solid rgb(1 2 3); }",
        "@media (width < 1rem) { .a { fill: oklch(40% 0.2 20); } }",
        ".a { --tone: tomato; }",
        ".a { background: Canvas; }",
        ".a { color: var(--no-token); }",
    ],
)
def test_a_colour_that_is_no_token_is_refused(style: str) -> None:
    (declaration,) = stylesheets.declarations(style)
    assert PAINT.search(declaration.name)
    assert not_of_tokens(declaration)
