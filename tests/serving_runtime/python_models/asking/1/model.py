"""Asks other models, in the way its input says, and answers with what they said as text."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "how", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "said", "data_type": "TYPE_STRING", "dims": [1]})
        return config

    async def execute(self, requests):
        return [await self.answer(request) for request in requests]

    async def answer(self, request):
        how = pb_utils.get_input_tensor_by_name(request, "how").as_numpy()[0].decode()
        said = getattr(self, how)()
        if asyncio.iscoroutine(said):
            said = await said
        return pb_utils.InferenceResponse([pb_utils.Tensor("said", np.array([str(said)], dtype=np.object_))])

    def request(self, width, model="add_sub"):
        given = [np.ones(width, np.float32), np.arange(width, dtype=np.float32) % 64]
        return pb_utils.InferenceRequest(
            model_name=model,
            requested_output_names=["OUTPUT0"],
            inputs=[pb_utils.Tensor(f"INPUT{number}", array) for number, array in enumerate(given)],
        )

    def total(self, response):
        if response.has_error():
            return [response.error().code(), response.error().message()]
        return float(pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy().sum(dtype=np.float64))

    def one(self):
        return self.total(self.request(3).exec())

    def large(self):
        return self.total(self.request(100_000).exec())

    def nobody(self):
        return self.total(self.request(3, model="nobody").exec())

    def ready(self):
        return [pb_utils.is_model_ready("add_sub"), pb_utils.is_model_ready("nobody")]

    async def several(self):
        responses = await asyncio.gather(*[self.request(width).async_exec() for width in range(1, 11)])
        return [self.total(response) for response in responses]

    def numbers(self, n):
        tensor = pb_utils.Tensor("n", np.array([n], np.int32))
        return pb_utils.InferenceRequest(model_name="countdown", inputs=[tensor])

    def stream(self):
        return [response.output_tensors()[0].as_numpy().tolist() for response in self.numbers(3).exec(decoupled=True)]

    async def later(self):
        responses = await self.numbers(3).async_exec(decoupled=True)
        return [response.output_tensors()[0].as_numpy().tolist() async for response in responses]

    def refused(self):
        return self.total(self.numbers(3).exec())
