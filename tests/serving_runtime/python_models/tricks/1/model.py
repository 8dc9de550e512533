"""Does what its input `do` says."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.kept = []
        pb_utils.Logger.log_warn("a warning of the model")
        print("a line on standard output")
        print("a line on standard error", file=sys.stderr)

    def execute(self, requests):
        texts = [self.text(request) for request in requests]
        if "raise" in texts:
            raise ValueError("no reason")
        if "too few" in texts:
            return []
        return [self.answer(request, text, requests) for request, text in zip(requests, texts)]

    def text(self, request):
        return pb_utils.get_input_tensor_by_name(request, "do").as_numpy()[0, 0].decode()

    def answer(self, request, text, requests):
        verb, _, rest = text.partition(" ")
        return getattr(self, f"on_{verb}")(request, rest, requests)

    def said(self, text, **parameters):
        array = np.array([[str(text)]], dtype=np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("text", array)], parameters=parameters)

    def on_die(self, request, rest, requests):
        os.kill(os.getpid(), getattr(signal, rest))

    def on_exit(self, request, rest, requests):
        os._exit(int(rest))

    def on_pid(self, request, rest, requests):
        return self.said(os.getpid())

    def on_together(self, request, rest, requests):
        return self.said(len(requests))

    def on_fail(self, request, rest, requests):
        return pb_utils.InferenceResponse(error=pb_utils.TritonError("as asked", getattr(pb_utils.TritonError, rest)))

    def on_request(self, request, rest, requests):
        said = [request.request_id(), request.correlation_id(), request.requested_output_names(), request.timeout()]
        return self.said([*said, request.parameters()], answered="yes", count=3)

    def on_arguments(self, request, rest, requests):
        return self.said(sorted(self.args.items()))

    def on_wrong(self, request, rest, requests):
        return pb_utils.InferenceResponse([pb_utils.Tensor("numbers", np.zeros((1, 1)))])

    def on_misshapen(self, request, rest, requests):
        return pb_utils.InferenceResponse([pb_utils.Tensor("text", np.array([["two", "texts"]], dtype=np.object_))])

    def on_flat(self, request, rest, requests):
        return pb_utils.InferenceResponse([pb_utils.Tensor("numbers", np.zeros(1, np.int64))])

    def on_unknown(self, request, rest, requests):
        return pb_utils.InferenceResponse([pb_utils.Tensor("else", np.zeros((1, 1)))])

    def on_double(self, request, rest, requests):
        numbers = pb_utils.get_input_tensor_by_name(request, "numbers").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("numbers", numbers * 2)])

    def on_keep(self, request, rest, requests):
        self.kept.append(pb_utils.get_input_tensor_by_name(request, "numbers").as_numpy())
        return self.said([int(array[0, 0]) for array in self.kept if (array == array[0, 0]).all()])

    def on_forget(self, request, rest, requests):
        self.kept.clear()
        return self.said("")

    def on_wait(self, request, rest, requests):
        """Say so in a file, then wait until nobody wants the answer, and say so too."""
        file = Path(rest)
        file.write_text("waiting")
        deadline = time.monotonic() + 60
        while not request.is_cancelled() and time.monotonic() < deadline:
            time.sleep(0.01)
        file.write_text(f"cancelled {request.is_cancelled()}")
        return self.said("")
