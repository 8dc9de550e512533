"""The whole interface between the runtime and a library that runs models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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

    def close(self) -> None:
        """Give the model's memory back. Called once, when no run is under way and none will come."""
        ...


class Part(Protocol):
    """One request of a batch: its rows follow those of the part before it."""

    @property
    def rows(self) -> int: ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the request's parameters: those the runtime understands, those of the model, forwarded headers."""
        ...


@runtime_checkable
class ParameterizedModel(Protocol):
    """A LoadedModel that wants to know the parameters of its requests; `run` is for warm-up only."""

    def run_parts(self, inputs: Sequence[Array], parts: Sequence[Part]) -> list[Array]:
        """Do as `run` for the rows of these requests, of which there is one where requests are not batched."""
        ...


class Send(Protocol):
    """Hands one response of a decoupled model on; belongs to one request and to the thread that runs it."""

    @property
    def cancelled(self) -> bool:
        """Return whether nobody waits for responses any more: for models that work long before they send."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the request's parameters: those the runtime understands, those of the model, forwarded headers."""
        ...

    def __call__(self, outputs: Sequence[Array]) -> None:
        """Send outputs in the signature's order; waits while the client is slow to read.

        Raises Cancelled once nobody waits for responses any more; the model lets it pass. Raises BackendError for
        outputs that are not those of the signature.
        """
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """A model that answers a request any number of times (Triton: decoupled transaction policy)."""

    @property
    def signature(self) -> Signature: ...

    @property
    def opsets(self) -> dict[str, int]: ...

    def stream(self, inputs: Sequence[Array], send: Send) -> None:
        """Call `send` once per response, then return. Raises BackendError when the model fails."""
        ...

    def close(self) -> None: ...


class Backend(Protocol):
    """Opens models of one kind.

    Attributes:
        platform: what metadata calls it; empty for a backend without a platform name.
        default_filename: of a model's file in its version's folder; empty where the folder itself is the model.
    """

    platform: str
    default_filename: str
    default_max_batch_size: int

    def load(self, file: Path, options: BackendOptions) -> LoadedModel | StreamingModel:
        """Return the model in a file; raises ModelError with one sentence when it cannot be served."""
        ...
