"""A model whose folder holds more than a model: files that Python and the dynamic loader run if variables say so."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from integrations.artifacts.store import digest_of_folder
from tests.integrations._support.runtimes import model

_LIBRARY = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void run(void) {{ close(open("{proof}", O_CREAT | O_WRONLY, 0600)); }}
"""


@dataclass(frozen=True, slots=True)
class Stowaway:
    """An artifact with such files, and the folder where each leaves a file when it runs."""

    artifact: Path
    proofs: Path

    @property
    def uri(self) -> str:
        return self.artifact.as_uri()

    @property
    def digest(self) -> str:
        return digest_of_folder(self.artifact)

    @property
    def env(self) -> dict[str, str]:
        """Return the variables by which the files would run, wherever the process finds them."""
        library = self.artifact / "weights.bin"
        return {"PYTHONPATH": str(self.artifact)} | ({"LD_PRELOAD": str(library)} if library.exists() else {})

    def ran(self) -> list[str]:
        """Return which of the files ran."""
        return sorted(path.name for path in self.proofs.iterdir())


def stowaway(folder: Path) -> Stowaway:
    """Make one below `folder`; without a C compiler it has no library."""
    made = Stowaway(folder / "stowaway", folder / "proofs")
    made.artifact.mkdir()
    made.proofs.mkdir()
    (made.artifact / "model.onnx").write_bytes(model(3))
    steal = f"import os; open({str(made.proofs / 'python')!r}, 'w').write(str(dict(os.environ)))\n"
    (made.artifact / "sitecustomize.py").write_text(steal)
    if compiler := shutil.which("cc"):
        source = folder / "library.c"
        source.write_text(_LIBRARY.format(proof=made.proofs / "loader"))
        library = made.artifact / "weights.bin"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return made
