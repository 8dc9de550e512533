"""What was read of each Python file, kept between runs: reading all of them takes seven seconds, few change."""

import hashlib
import pickle
from pathlib import Path
from types import TracebackType

from tests.affected.modules import module_of
from tests.affected.source import Source, read

_CODE = Path(__file__).with_name("source.py")


class Cache:
    """Sources by the digest of path and text; one that cannot be parsed counts as empty (its own test fails)."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{hashlib.sha256(_CODE.read_bytes()).hexdigest()[:16]}.pickle"
        self._known: dict[str, Source] = {}
        self._used: dict[str, Source] = {}

    def __enter__(self) -> "Cache":
        try:
            self._known = pickle.loads(self._file.read_bytes())
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError):
            self._known = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or self._used.keys() == self._known.keys():
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        for old in self._file.parent.glob("*.pickle"):
            old.unlink()
        self._file.write_bytes(pickle.dumps(self._used))

    def read(self, path: str, text: str) -> Source:
        key = hashlib.sha256(f"{path}\0{text}".encode()).hexdigest()
        found = self._known.get(key)
        if found is None:
            try:
                found = read(text, module_of(path), package=path.endswith("/__init__.py"))
            except SyntaxError:
                found = read("")
        self._used[key] = found
        return found
