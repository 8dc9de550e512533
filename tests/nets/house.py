"""Prints the sizes of the code base that its layout is judged by, as a Markdown table: python -m tests.nets.house

It judges nothing; the rules that a test holds are in `contracts/`.
"""

import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.nets._support.modules import PLATFORM, RUNTIME, Module, imports, modules, strings
from tests.nets._support.recording import ROOT
from tests.nets.contracts import clock, rooms, rules
from tests.nets.contracts.circles import circles

Row = tuple[str, str, str]
"""What is measured, how it is now, what it is held to."""
CODE = ("platform", "releases", "serving_runtime", "tests")
FOLDERS = (*CODE, "frontend/src", "frontend/styles", "docs", "charts", "benchmarks")
MOST_ENTRIES = 12
FLAT = (
    "docs/decisions",
    "docs/how-to",
    "docs/images",
    "docs/reference",
    "docs/runbooks",
    "platform/fairlead_cli/commands",
    "tests/fairlead_cli/commands",
    "tests/nets/recorded",
    "*/ci",
    "*/generated",
    "*/golden",
    "*/golden/*",
    "*/migrations",
)
"""Folders of like things, which may be long."""
SHORT_LINES, SHORT_WITH_ONE_IMPORTER = 60, 80
LARGEST_APP_LINES = 15_000
VAGUE = re.compile(r"\b(?:tell|tells|told|telling)\b", re.IGNORECASE)


def written() -> list[Module]:
    """Return the modules that people write: no migrations, nothing generated, no package that is only a name."""
    return [
        module
        for module in modules().values()
        if ".migrations." not in f"{module.name}." and ".generated" not in module.name and _has_code(module)
    ]


def _has_code(module: Module) -> bool:
    return not module.is_package or bool(imports(module.name)) or "def " in module.text or "=" in module.text


def entries() -> dict[str, int]:
    """Return how many entries each folder has, files and folders together, by its path; flat lists are left out."""
    found = {}
    for top in FOLDERS:
        for folder in (ROOT / top, *(ROOT / top).rglob("*")):
            path = str(folder.relative_to(ROOT))
            if folder.is_dir() and not _is_of_tools(folder) and not any(fnmatch(path, flat) for flat in FLAT):
                found[path] = sum(1 for each in folder.iterdir() if not _is_of_tools(each))
    return found


def _is_of_tools(path: Path) -> bool:
    return any(part in ("__pycache__", "node_modules") or part.startswith(".") for part in path.relative_to(ROOT).parts)


def of_folders() -> Iterator[Row]:
    """Yield the rows of folders."""
    by_size = sorted(entries().items(), key=lambda each: (-each[1], each[0]))
    over = [each for each in by_size if each[1] > MOST_ENTRIES]
    largest = ", ".join(f"`{path}` {count}" for path, count in by_size[:5])
    yield "entries per folder, largest", largest, f"{MOST_ENTRIES}, at most 15"
    yield f"folders of more than {MOST_ENTRIES} entries", f"{len(over)} of {len(by_size)}", "0"


def importers() -> Counter[str]:
    """Return how many modules import each module of ours."""
    return Counter(used for name in modules() for used in imports(name) if used in modules() and used != name)


def of_modules() -> Iterator[Row]:
    """Yield the rows of modules."""
    every, used_by = written(), importers()
    short = [module for module in every if module.lines < SHORT_LINES]
    alone = [each for each in every if each.lines < SHORT_WITH_ONE_IMPORTER and used_by[each.name] == 1]
    share = 100 * len(short) / len(every)
    yield "modules", f"{len(every)}, median {statistics.median(each.lines for each in every):.0f} lines", "about 650"
    yield f"share of modules under {SHORT_LINES} lines", f"{share:.0f} % ({len(short)})", "at most 10 %"
    yield f"modules under {SHORT_WITH_ONE_IMPORTER} lines with one importer", str(len(alone)), "at most 20"
    names = Counter(module.name.rpartition(".")[2] for module in every if not module.is_package)
    often = ", ".join(f"{name} x{count}" for name, count in names.most_common(8))
    yield "most frequent names of modules", often, "a folder by kind from 5 on"


def of_apps() -> Iterator[Row]:
    """Yield the rows of the control plane's apps."""
    lines: Counter[str] = Counter()
    for module in modules().values():
        if PLATFORM in module.file.parents and module.room not in rooms.PROGRAMS and ".migrations." not in module.name:
            lines[module.room] += module.lines
    (largest, count), everything = lines.most_common(1)[0], lines.total()
    now = f"`{largest}` {count} lines, {100 * count / everything:.0f} % of {everything}"
    yield "largest app of the control plane", now, f"no app over {LARGEST_APP_LINES} lines"


def at_root(app: str) -> list[str]:
    """Return the names at the root of an app, modules and packages."""
    return sorted({".".join(name.split(".")[:2]) for name in modules() if name.startswith(f"{app}.")})


def of_contracts() -> Iterator[Row]:
    """Yield the rows of import contracts."""
    for app in sorted(rooms.APPS & {module.room for module in modules().values()}):
        names = [name for name in at_root(app) if name.rpartition(".")[2] not in rooms.OUTSIDE]
        none = [name for name in names if rooms.layer(name) is None]
        yield f"names at the root of `{app}` in no contract", f"{len(none)} of {len(names)}", "0"
    yield "modules of apps in no layer", str(len(list(rules.unplaced()))), "0"
    for what, rule in (
        ("imports against the order of rooms", rules.of_rooms),
        ("imports against the order of layers", rules.of_layers),
        ("imports of Django and others by pure code", rules.of_purity),
        ("imports between the programs", rules.of_programs),
    ):
        yield what, str(len(list(rule()))), "0"
    reading = {
        module.name
        for module in modules().values()
        if rooms.level(module.room) is not None and not rooms.is_edge(module.name) and ".migrations." not in module.name
        if clock.reads(module.name)
    }
    yield "modules that read clock or randomness, edges left out", str(len(reading)), "0"


def of_circles() -> Iterator[Row]:
    """Yield the row of import circles; imports inside functions count."""
    found = list(circles({name: imports(name) & modules().keys() for name in modules()}))
    where = sorted({each[0].rpartition(".")[0] for each in found})
    yield "import circles", f"{len(found)} ({', '.join(where)})" if found else "0", "0"


def of_words() -> Iterator[Row]:
    """Yield the rows of words and of golden files."""
    count = sum(len(VAGUE.findall(str(each.value))) for name in modules() for each in strings(name))
    yield '"tell" and "told" in texts of the sources', str(count), "under 50"
    files = [each for folder in (ROOT / "tests").rglob("golden") if folder.is_dir() for each in folder.rglob("*")]
    golden = sum(len(each.read_text().splitlines()) for each in files if each.is_file())
    recorded = sum(len(each.read_text().splitlines()) for each in (ROOT / "tests/nets/recorded").glob("*"))
    yield "lines of golden files", str(golden), "at most 10000"
    yield "lines of these nets", str(recorded), "no gate"


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| what | now | held to |"
    yield "| --- | --- | --- |"
    for rows in (of_folders, of_modules, of_apps, of_contracts, of_circles, of_words):
        yield from (f"| {what} | {now} | {goal} |" for what, now, goal in rows())
    runtime = sum(module.lines for module in modules().values() if module.room == RUNTIME)
    yield f"| lines of the serving runtime | {runtime} | no gate |"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in table()))
