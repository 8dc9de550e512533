"""The whole interface between the runtime and a library that runs models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature
from serving_runtime.datatypes import Array


class LoadedModel(Protocol):
    """One version of one model, ready to run; safe to call from several threads at once."""

    @property
    def signature(self) -> Signature: ...

    @property
    def opsets(self) -> dict[str, int]:
        """Return the operator sets the file was made for; empty where the format has none."""
        ...

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs in the signature's order for inputs in the signature's order.

        Raises BackendError when the model fails. Releases the GIL while the model runs.
        """
        ...


class Backend(Protocol):
    """Opens models of one kind."""

    platform: str
    default_filename: str
    default_max_batch_size: int

    def load(self, file: Path, options: BackendOptions) -> LoadedModel:
        """Return the model in a file; raises ModelError with one sentence when it cannot be served."""
        ...
