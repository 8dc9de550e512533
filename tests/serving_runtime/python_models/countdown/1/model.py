"""Answers n with n-1 ... 0, from a thread of its own; -1 endlessly, -2 with an error after two numbers.

Its config is empty: auto_complete_config says everything.
"""

import itertools
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        auto_complete_model_config.add_input({"name": "n", "data_type": "TYPE_INT32", "dims": [1]})
        auto_complete_model_config.add_output({"name": "left", "data_type": "TYPE_INT32", "dims": [1]})
        auto_complete_model_config.set_max_batch_size(0)
        auto_complete_model_config.set_model_transaction_policy({"decoupled": True})
        return auto_complete_model_config

    def initialize(self, args):
        assert pb_utils.using_decoupled_model_transaction_policy(__import__("json").loads(args["model_config"]))

    def execute(self, requests):
        for request in requests:
            n = int(pb_utils.get_input_tensor_by_name(request, "n").as_numpy()[0])
            sender = request.get_response_sender()
            if n != -3:  # which nobody answers: the sender ends its responses when it goes
                threading.Thread(target=self.respond, args=(sender, n), daemon=True).start()

    def respond(self, sender, n):
        for left in itertools.count() if n == -1 else reversed(range(max(n, 2))):
            if sender.is_cancelled():
                pb_utils.Logger.log_info("told to stop")
                break
            tensor = pb_utils.Tensor("left", np.array([left], np.int32))
            sender.send(pb_utils.InferenceResponse([tensor], parameters={"left": left}))
        if n == -2:
            error = pb_utils.TritonError("no further", pb_utils.TritonError.UNAVAILABLE)
            sender.send(pb_utils.InferenceResponse(error=error))
            return
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
