"""What both the runtime and the control plane import needs nothing that one of them may lack."""

import ast
import sys
from pathlib import Path

import serving_runtime.shared

FOLDER = Path(serving_runtime.shared.__file__).parent


def test_it_imports_numpy_and_the_standard_library_only() -> None:
    files = list(FOLDER.rglob("*.py"))
    assert len(files) > 1
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    found = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    assert "ipaddress" in found
    allowed = {*sys.stdlib_module_names, "numpy"}
    outside = {name for name in found if name.partition(".")[0] not in allowed}
    assert {name for name in outside if not name.startswith("serving_runtime.shared")} == set()
