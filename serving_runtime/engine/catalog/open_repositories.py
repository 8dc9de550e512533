"""Opens model repositories by their location."""

import atexit
import shutil
import tempfile
from pathlib import Path

from serving_runtime.engine.catalog.repository import LocalRoot, Root
from serving_runtime.engine.catalog.repository_location import Location


class Roots:
    """Opens repositories, and keeps the folder for copies of remote ones.

    Args:
        cache: folder that keeps the copies over a restart; without it a temporary folder, removed at exit.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._temporary: Path | None = None

    def open(self, location: Location) -> Root:
        """Return a repository; raises ModelError where a library that it needs is not installed."""
        if isinstance(location, Path):
            return LocalRoot(location)
        from serving_runtime.engine.catalog.bucket_repository import BucketRoot  # noqa: PLC0415 - for those who have one

        return BucketRoot(location, self._folder())

    def close(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            atexit.unregister(self.close)

    def _folder(self) -> Path:
        if self._cache is not None:
            return self._cache
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="fairlead-repository-"))
            atexit.register(self.close)  # also where the server does not get as far as its start
        return self._temporary
