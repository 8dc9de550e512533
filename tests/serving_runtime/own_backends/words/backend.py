"""A decoupled backend of text: answers with the words of its input, one by one.

It fails at the word "fail". The request parameter `upper` asks for capital letters, as does `x-word-case: upper`;
`repeat` for each word so often.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from serving_runtime.backends.base import Send
from serving_runtime.common.datatypes import BYTES, DATATYPES, Array
from serving_runtime.common.errors import BackendError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec


class Model:
    opsets: dict[str, int] = {}
    signature = Signature(
        (TensorSpec("text_input", BYTES, (1,)),),
        (TensorSpec("text_output", BYTES, (1,)), TensorSpec("length", DATATYPES["INT32"], (1,))),
    )

    def stream(self, inputs: Sequence[Array], send: Send) -> None:
        upper = send.parameters.get("upper") or send.parameters.get("x-word-case") == "upper"
        for word in inputs[0][0].split():
            if word == b"fail":
                raise BackendError("the model failed at a word")
            told = word.upper() if upper else word
            for _ in range(send.parameters.get("repeat", 1)):
                send([np.array([told], dtype=object), np.array([len(told)], "i4")])

    def close(self) -> None: ...


class Words:
    platform = ""
    default_filename = ""
    default_max_batch_size = 0

    def load(self, file: Path, options: BackendOptions) -> Model:
        return Model()


BACKEND = Words()
