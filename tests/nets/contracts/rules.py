"""The import rules: each yields the violations that there are, as lines of text."""

from collections.abc import Iterator
from functools import cache

from tests.nets._support.modules import RUNTIME, Module, imports, modules
from tests.nets.contracts import rooms


def of_rooms() -> Iterator[str]:
    """Yield imports of a room above or beside."""
    for name, module in modules().items():
        mine = rooms.level(module.room)
        for used in sorted(imports(name)):
            theirs = rooms.level(used.partition(".")[0])
            if mine is None or theirs is None or used.partition(".")[0] == module.room:
                continue
            if theirs <= mine:
                yield f"{name} -> {used}"


def of_layers() -> Iterator[str]:
    """Yield imports, inside an app, of a layer above or beside; modules in no layer are in `unplaced`."""
    for module in in_layers():
        mine = rooms.layer(module.name)
        for used in sorted(imports(module.name)):
            if used.partition(".")[0] != module.room or rooms.part_of(used) == rooms.part_of(module.name):
                continue
            theirs = rooms.layer(used)
            both_pure = mine == theirs == len(rooms.LAYERS) - 1
            if mine is not None and theirs is not None and theirs <= mine and not both_pure:
                yield f"{module.name} -> {used}"


def unplaced() -> Iterator[str]:
    """Yield the modules of apps that no layer has."""
    yield from (module.name for module in in_layers() if rooms.layer(module.name) is None)


def in_layers() -> Iterator[Module]:
    """Yield the modules of apps, but for those that need no layer."""
    yield from (
        module
        for module in modules().values()
        if module.room in rooms.APPS and rooms.part_of(module.name) not in rooms.OUTSIDE
    )


def of_purity() -> Iterator[str]:
    """Yield what modules that are pure by path or by word import of Django and others, directly or through others."""
    for name, module in modules().items():
        if rooms.is_pure(name) or says_pure(module):
            yield from sorted(f"{name} -> {found}" for found in impure_below(name))


@cache
def impure_below(name: str) -> frozenset[str]:
    """Return what a module imports that pure code does not, with the module of ours that does it if it is another."""
    found, seen, todo = set(), {name}, [name]
    while todo:
        module = todo.pop()
        for used in imports(module):
            if any(used == each or used.startswith(f"{each}.") for each in rooms.VALUES):
                continue
            is_own = used.partition(".")[0] == name.partition(".")[0]
            if used.partition(".")[0] in rooms.IMPURE and not is_own:
                found.add(used if module == name else f"{used} through {module}")
            elif used in modules() and used not in seen and not rooms.is_pure(used):
                seen.add(used)
                todo.append(used)
    return frozenset(found)


def of_programs() -> Iterator[str]:
    """Yield imports between the programs and the control plane, but for what is shared."""
    for name, module in modules().items():
        for used in sorted(imports(name)):
            room = used.partition(".")[0]
            is_shared = used == rooms.SHARED or used.startswith(f"{rooms.SHARED}.")
            between = {module.room, room} & set(rooms.PROGRAMS) and used in modules() and room != module.room
            if between and not (is_shared and room == RUNTIME):
                yield f"{name} -> {used}"


def says_pure(module: Module) -> bool:
    """Return whether a module of the control plane says that it is pure, in the first words of its docstring."""
    head = module.text.split('"""')[1] if module.text.startswith('"""') else ""
    is_ours = module.room in rooms.APPS | {"placement", "integrations", "common"}
    return is_ours and ("Pure." in head or "Pure:" in head or "pure" in head.split("\n")[0])
