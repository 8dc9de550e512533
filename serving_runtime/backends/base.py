"""The whole interface between the runtime and a library that runs models."""

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


class Outputs(list[Array]):
    """A response's outputs in the signature's order, with the parameters of the response; ABSENT stands for none."""

    def __init__(self, arrays: Iterable[Array], parameters: Mapping[str, Any] = NO_PARAMETERS) -> None:
        super().__init__(arrays)
        self.parameters = parameters


Answer: TypeAlias = Outputs | ServingError


class Asked(Protocol):
    """One request, as a model sees it that takes requests one by one."""

    @property
    def id(self) -> str: ...

    @property
    def inputs(self) -> Sequence[Array]:
        """Return the inputs in the signature's order; ABSENT stands for an optional one that is not given."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """Return the names of the outputs that are asked for; none where all are."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the request's parameters: those the runtime understands, those of the model, forwarded headers."""
        ...

    def when_cancelled(self, tell: Callable[[], None]) -> None:
        """Have a function called, in any thread, once nobody waits for the answer; at once where that is so."""
        ...


@runtime_checkable
class RemoteModel(Protocol):
    """A model that runs in other processes: whoever calls it waits, and they are ended with the server."""

    @property
    def problem(self) -> str:
        """Return why it cannot answer now, in words; empty while it can."""
        ...

    @property
    def resident_bytes(self) -> int:
        """Return how much of its processes is in memory."""
        ...

    def close(self) -> None: ...


class Calls(Protocol):
    """The server, as a model asks it for other models; any thread may call."""

    def infer(
        self, request: InferRequest, on_done: OnDone, on_begun: Callable[[Cancellable], None], *, decoupled: bool
    ) -> None:
        """Start a request; both functions are called on the event loop, and must not wait.

        Args:
            on_done: called with every response, or an error.
            on_begun: called with what cancels it, unless it is refused.
            decoupled: whether there may be more responses than one.
        """
        ...

    def cancel(self, request: Cancellable) -> None: ...

    def serves(self, name: str, version: str) -> bool:
        """Return whether a model answers; the highest version for no version."""
        ...


@runtime_checkable
class CallingModel(Protocol):
    """A model that asks others."""

    @property
    def calls_under_way(self) -> int:
        """Return how many requests it has made of other models that are not answered."""
        ...

    def connect(self, calls: Calls) -> None:
        """Take note of the server that it is a part of from now on."""
        ...


@runtime_checkable
class RequestModel(RemoteModel, Protocol):
    """A RemoteModel that takes the requests of a batch as they are, not joined; `run` is for warm-up only."""

    def run_requests(self, requests: Sequence[Asked]) -> list[Answer]:
        """Return the answer to each request; each may fail alone. Raises ServingError where all do."""
        ...


Explanation: TypeAlias = tuple[Tensor, ...] | ServingError


@runtime_checkable
class ExplainingModel(Protocol):
    """A RequestModel that explains its answers (V1: explain)."""

    def explain_requests(self, requests: Sequence[Asked]) -> list[Explanation]:
        """Return for each request outputs of any names and shapes; each may fail alone."""
        ...


class Send(Protocol):
    """Hands one response of a decoupled model on; belongs to one request and to the thread that runs it."""

    @property
    def cancelled(self) -> bool:
        """Return whether nobody waits for responses any more: for models that work long before they send."""
        ...

    @property
    def id(self) -> str: ...

    @property
    def outputs(self) -> Sequence[str]:
        """Return the names of the outputs that are asked for; none where all are."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the request's parameters: those the runtime understands, those of the model, forwarded headers."""
        ...

    def when_cancelled(self, tell: Callable[[], None]) -> None:
        """Have a function called, in any thread, once nobody waits for responses; at once where that is so."""
        ...

    def __call__(self, outputs: Sequence[Array]) -> None:
        """Send outputs in the signature's order, ABSENT for none; waits while the client is slow to read.

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

    One whose library as it is installed can run models on GPUs says so by an attribute `runs_on_gpus`.
    """

    platform: str
    default_filename: str
    default_max_batch_size: int

    def load(self, file: Path, options: BackendOptions) -> LoadedModel | StreamingModel:
        """Return the model in a file; raises ModelError with one sentence when it cannot be served."""
        ...
