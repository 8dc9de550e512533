"""Lua scripts as Argo CD runs them: Lua 5.1, the object as `obj`, and no library but the base and tables."""

from pathlib import Path
from typing import Any

from lupa.lua51 import LuaRuntime, lua_type

Json = dict[str, Any]
_WITHOUT = ("io", "os", "string", "math", "debug", "package", "require", "dofile", "loadfile", "python")


def ran(script: Path | str, item: Json) -> Any:
    """Return what a script returns for an object."""
    runtime = LuaRuntime(unpack_returned_tuples=False, register_eval=False, register_builtins=False)
    scope = runtime.globals()
    for name in _WITHOUT:
        scope[name] = None
    scope.obj = _table(runtime, item)
    return _python(runtime.execute(script.read_text() if isinstance(script, Path) else script))


def _table(runtime: LuaRuntime, value: Any) -> Any:
    if isinstance(value, dict):
        return runtime.table_from({name: _table(runtime, each) for name, each in value.items()})
    if isinstance(value, list):
        return runtime.table_from([_table(runtime, each) for each in value])
    return value


def _python(value: Any) -> Any:
    if lua_type(value) != "table":
        return value
    found = {name: _python(each) for name, each in value.items()}
    return list(found.values()) if found and all(isinstance(name, int) for name in found) else found
