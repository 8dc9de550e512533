"""Decoupled Python model: sends any number of responses to a request."""

import queue
from collections.abc import Sequence
from functools import partial

from serving_runtime.backends.base import Send
from serving_runtime.backends.python.model import RemotePythonModel
from serving_runtime.backends.python.process import Asking, Response
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import Cancelled


class DecoupledPythonModel(RemotePythonModel):
    """One version of a decoupled model; a process runs many requests concurrently, each with a waiting thread."""

    def stream(self, inputs: Sequence[Array], send: Send) -> None:
        asked = {"id": send.id, "outputs": list(send.outputs), "parameters": dict(send.parameters)}
        with self._pool.lent() as worker:
            responses: queue.SimpleQueue[Response] = queue.SimpleQueue()
            (number,) = worker.execute([Asking(asked, self._tensors(inputs), responses.put)])
            send.when_cancelled(partial(worker.cancel, number))
            while True:
                response = responses.get()
                if response.error is not None:
                    raise response.error
                if response.outputs is not None:
                    try:
                        send(self._outputs.arranged(response, send.outputs))
                    except Cancelled:
                        worker.cancel(number)
                        raise
                    worker.taken(number)
                if response.final:
                    return
