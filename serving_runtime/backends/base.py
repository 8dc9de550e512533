"""Backend interface: the whole interface between the runtime and a library that runs models."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import NO_PARAMETERS, Cancellable, InferRequest, OnDone, Tensor
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature


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
        """Release the model's memory. Called once, after the last run."""
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
    """A LoadedModel that uses the parameters of its requests; `run` is for warm-up only."""

    def run_parts(self, inputs: Sequence[Array], parts: Sequence[Part]) -> list[Array]:
        """Same as `run` for the rows of these requests; a single one where requests are not batched."""
        ...


class Outputs(list[Array]):
    """A response's outputs in the signature's order, with the response's parameters; missing outputs are ABSENT."""

    def __init__(self, arrays: Iterable[Array], parameters: Mapping[str, Any] = NO_PARAMETERS) -> None:
        super().__init__(arrays)
        self.parameters = parameters


Answer: TypeAlias = Outputs | ServingError


class Asked(Protocol):
    """One request, for a model that takes requests one by one."""

    @property
    def id(self) -> str: ...

    @property
    def inputs(self) -> Sequence[Array]:
        """Return the inputs in the signature's order; missing optional inputs are ABSENT."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """Return the names of the requested outputs; empty for all."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the request's parameters: those the runtime understands, those of the model, forwarded headers."""
        ...

    def when_cancelled(self, notify: Callable[[], None]) -> None:
        """Have a function called, in any thread, once the request is cancelled; at once where it already is."""
        ...


@runtime_checkable
class RemoteModel(Protocol):
    """A model that runs in other processes: calls block, and the processes end with the server."""

    @property
    def problem(self) -> str:
        """Return why it is unavailable, in words; empty while it is available."""
        ...

    @property
    def resident_bytes(self) -> int:
        """Return the resident memory of its processes."""
        ...

    def close(self) -> None: ...


class Calls(Protocol):
    """The server's interface for models that call other models; thread-safe."""

    def infer(
        self, request: InferRequest, on_done: OnDone, on_begun: Callable[[Cancellable], None], *, decoupled: bool
    ) -> None:
        """Start a request; both functions are called on the event loop, and must not block.

        Args:
            on_done: called with every response, or an error.
            on_begun: called with the request's cancel function, unless it is refused.
            decoupled: whether there may be several responses.
        """
        ...

    def cancel(self, request: Cancellable) -> None: ...

    def serves(self, name: str, version: str) -> bool:
        """Return whether a model is ready; the highest version if `version` is empty."""
        ...


@runtime_checkable
class CallingModel(Protocol):
    """A model that calls other models."""

    @property
    def calls_under_way(self) -> int:
        """Return the number of its pending requests to other models."""
        ...

    def connect(self, calls: Calls) -> None:
        """Set the server that it belongs to from now on."""
        ...


@runtime_checkable
class RequestModel(RemoteModel, Protocol):
    """A RemoteModel that takes the requests of a batch unjoined; `run` is for warm-up only."""

    def run_requests(self, requests: Sequence[Asked]) -> list[Answer]:
        """Return the response to each request; each may fail alone. Raises ServingError where all do."""
        ...


Explanation: TypeAlias = tuple[Tensor, ...] | ServingError


@runtime_checkable
class ExplainingModel(Protocol):
    """A RequestModel that explains its predictions (V1: explain)."""

    def explain_requests(self, requests: Sequence[Asked]) -> list[Explanation]:
        """Return, for each request, outputs of any names and shapes; each may fail alone."""
        ...


class Send(Protocol):
    """Sends the responses of a decoupled model; belongs to one request and to the thread that runs it."""

    @property
    def cancelled(self) -> bool:
        """Return whether the request is cancelled: for models that compute long before they send."""
        ...

    @property
    def id(self) -> str: ...

    @property
    def outputs(self) -> Sequence[str]:
        """Return the names of the requested outputs; empty for all."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the request's parameters: those the runtime understands, those of the model, forwarded headers."""
        ...

    def when_cancelled(self, notify: Callable[[], None]) -> None:
        """Have a function called, in any thread, once the request is cancelled; at once where it already is."""
        ...

    def __call__(self, outputs: Sequence[Array]) -> None:
        """Send outputs in the signature's order, ABSENT for none; blocks while the client is slow to read.

        Raises Cancelled once the request is cancelled; the model lets it pass. Raises BackendError for outputs that are
        not those of the signature.
        """
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """A model that sends any number of responses to a request (Triton: decoupled transaction policy)."""

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
        platform: its name in metadata; empty for a backend without a platform name.
        default_filename: of a model's file in its version's folder; empty where the folder itself is the model.

    A backend whose installed library can run models on GPUs has an attribute `runs_on_gpus`.
    """

    platform: str
    default_filename: str
    default_max_batch_size: int

    def load(self, file: Path, options: BackendOptions) -> LoadedModel | StreamingModel:
        """Return the model in a file; raises ModelError, one sentence, when it cannot be served."""
        ...
