"""Where a replica's runtime has its models from."""

from pathlib import Path
from typing import Protocol


class ModelSource(Protocol):
    """The models of one revision, for all its replicas."""

    @property
    def flags(self) -> list[str]:
        """Return the runtime's flags."""

    @property
    def folders(self) -> list[Path]:
        """Return the folders that the runtime reads."""

    async def prepare(self) -> None:
        """Make what a replica needs before it starts; raises FairleadError and OSError."""

    async def remove(self) -> None:
        """Remove it, once no replica runs any more."""
