"""The definitions of a Python file, and what each of them names.

The graph goes from definition to definition and not from file to file: nearly every file imports some module of
models in the end, few use the one function that changed.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

BODY = ""
"""The definition that holds what a module does when it is imported."""
EVERY = "*"
"""The definition that stands for all of a module."""
ROUTE = "urlpatterns "
"""How the name of an entry of `urlpatterns` begins; its path follows."""
HOLE = "\0"
"""What a string has where its value is known only when it runs."""
_STARTED = re.compile(r"-m ([\w.]+)")
_PATHS_OF_ROUTES = {"path", "re_path"}


@dataclass
class Definition:
    """One name that a module binds: a function, a class, a value, an import, or `BODY`.

    `names` are dotted as they are written, `strings` have a `HOLE` for what is filled in, `started` are modules that
    `python -m` runs, `fixtures` parameters; `printed` differs where two versions of the definition do.
    """

    names: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    fixtures: set[str] = field(default_factory=set)
    imports: set[tuple[str, str]] = field(default_factory=set)
    registers: list[tuple[str, set[str]]] = field(default_factory=list)
    autouse: bool = False
    printed: str = ""

    @property
    def imported(self) -> bool:
        """Say whether the name is one that an import binds."""
        return bool(self.imports) and not self.names


@dataclass(frozen=True)
class Source:
    """A file's definitions by name, and its imports: `import numpy as np` is "np" to ("numpy", "")."""

    definitions: dict[str, Definition]
    bindings: dict[str, set[tuple[str, str]]]


def read(text: str, module: str = "", *, package: bool = False) -> Source:
    """Return what a file defines; raises SyntaxError. `module` and `package` say where relative imports start."""
    tree = ast.parse(text)
    made = Source({}, {})
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, target in _targets(node, module, package):
                made.bindings.setdefault(name, set()).add(target)
    for names, node in _statements(tree.body):
        assigned = isinstance(node, ast.Assign | ast.AugAssign)  # of `os.environ["A"] = "b"` the root is not ours
        for name in {BODY if assigned and name in made.bindings else name for name in names}:
            _Reader(made.definitions.setdefault(name, Definition()), module, package).take(node)
    for name, definition in made.definitions.items():
        bound = sorted(
            (root, *target)
            for root in {n.partition(".")[0] for n in definition.names} - {name}
            for target in made.bindings.get(root, ())
        )
        definition.printed = hashlib.sha256(f"{definition.printed}{bound}".encode()).hexdigest()
    return made


def changed(old: Source, new: Source) -> set[str]:
    """Return the names of the definitions of which something differs, those that are gone or new included."""
    names = old.definitions.keys() | new.definitions.keys()
    nothing = Definition()
    return {n for n in names if old.definitions.get(n, nothing).printed != new.definitions.get(n, nothing).printed}


def _statements(body: Iterable[ast.stmt]) -> Iterator[tuple[list[str], ast.AST]]:
    """Yield each statement of a module with the names that it binds, those inside `if`, `try` and `with` too."""
    for number, node in enumerate(body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield [node.name], node
            case ast.Assign(targets=[ast.Name("urlpatterns")], value=ast.List(elts)):
                for element in elts:
                    yield [_route(element)], element
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                roots = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
                yield roots or [BODY], node
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    yield [bound], type(node)(**{**vars(node), "names": [alias]})
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield from _statements(node.body)
            case ast.If() | ast.Try() | ast.With():
                yield from _statements(node.body)
                yield from _statements(getattr(node, "orelse", []))
                yield from _statements(getattr(node, "finalbody", []))
                for handler in getattr(node, "handlers", []):
                    yield from _statements(handler.body)
                for part in (getattr(node, "test", None), *getattr(node, "items", [])):
                    if part is not None:
                        yield [BODY], part
            case ast.Expr(ast.Constant(str())):
                yield ["__doc__" if number == 0 else BODY], node
            case _:
                yield [BODY], node


def _route(element: ast.expr) -> str:
    if isinstance(element, ast.Call) and isinstance(element.func, ast.Name) and element.func.id in _PATHS_OF_ROUTES:
        first = element.args[0]
        return ROUTE + (str(first.value) if isinstance(first, ast.Constant) else "")
    return ROUTE


def _targets(node: ast.Import | ast.ImportFrom, module: str, package: bool) -> Iterator[tuple[str, tuple[str, str]]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (
                (alias.asname, (alias.name, ""))
                if alias.asname
                else (alias.name.partition(".")[0], (alias.name.partition(".")[0], ""))
            )
        return
    parents = module.split(".")[: len(module.split(".")) - node.level + package] if node.level else []
    origin = ".".join([*parents, *([node.module] if node.module else [])])
    for alias in node.names:
        yield alias.asname or alias.name, (origin, alias.name)


class _Reader(ast.NodeVisitor):
    """Collects what one definition names."""

    def __init__(self, into: Definition, module: str, package: bool) -> None:
        self.into = into
        self.module = module
        self.package = package

    def take(self, node: ast.AST) -> None:
        self.into.printed += ast.dump(node)
        decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
        self.into.autouse |= any("autouse=True" in each for each in decorators)
        self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.into.names.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if name := _dotted(node):
            self.into.names.add(name)
        else:
            self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self.into.fixtures.add(node.arg)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.into.imports.update((alias.name, "") for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.into.imports.update(target for _, target in _targets(node, self.module, self.package))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._string(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._string("".join(str(p.value) if isinstance(p, ast.Constant) else HOLE for p in node.values))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        parts = list(_joined(node))
        if not isinstance(node.op, ast.Div) or not any(isinstance(p, str) for p in parts):
            self.generic_visit(node)
            return
        words: list[str] = []
        for part in parts:
            if isinstance(part, str):
                words.append(part)
            else:
                self.visit(part)
        self.into.paths.add("/".join(words))

    def visit_List(self, node: ast.List | ast.Tuple) -> None:
        words = [each.value if isinstance(each, ast.Constant) else None for each in node.elts]
        for flag, value in pairwise(words):
            if flag == "-m" and isinstance(value, str):
                self.into.started.add(value)
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self.visit_List(node)

    def visit_Call(self, node: ast.Call) -> None:
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "register"
            and (owner := _dotted(node.func.value))
        ):
            inner = Definition()
            for argument in node.args:
                _Reader(inner, self.module, self.package).visit(argument)
            self.into.registers.append((owner, inner.names))
        self.generic_visit(node)

    def _string(self, text: str) -> None:
        self.into.strings.add(text)
        self.into.started.update(_STARTED.findall(text))


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain that begins with a name, else nothing."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else ""


def _joined(node: ast.expr) -> Iterator[str | ast.expr]:
    """Yield the parts of `folder / "docs" / "a.md"`, constants as text."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _joined(node.left)
        yield from _joined(node.right)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        yield node
