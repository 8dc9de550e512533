"""What both the runtime and the control plane import needs nothing that one of them may lack."""

import ast
import sys
from pathlib import Path

import serving_runtime.shared

FOLDER = Path(serving_runtime.shared.__file__).parent


def test_it_imports_numpy_and_the_standard_library_only() -> None:
    files = list(FOLDER.rglob("*.py"))
    assert len(files) > 1
    allowed = {*sys.stdlib_module_names, "numpy", "serving_runtime.shared"}
    found = set()
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    assert {name for name in found if name.split(".")[0] not in allowed and not name.startswith(FOLDER.name)} <= {
        name for name in found if name.startswith("serving_runtime.shared")
    }
