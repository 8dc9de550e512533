"""ensemble_scheduling: what an ensemble must say of itself."""

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config.ensembles import Ensemble, ensemble
from serving_runtime.config.support import refuse_unsupported

pytestmark = pytest.mark.feature("C10")

X = 'input { name: "x" data_type: TYPE_FP32 dims: [4] }'
Y = 'output { name: "y" data_type: TYPE_FP32 dims: [4] }'


def step(model: str, inputs: dict[str, str], outputs: dict[str, str], more: str = "model_version: -1") -> str:
    maps = [f'input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items()]
    maps += [f'output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items()]
    return f'step {{ model_name: "{model}" {more} {" ".join(maps)} }}'


def parsed(*steps: str, more: str = "", tensors: str = f"{X} {Y}") -> Ensemble | None:
    text = f'name: "e" {tensors} {more} ensemble_scheduling {{ {" ".join(steps)} }}'
    message = text_format.Parse(text, proto.ModelConfig())
    refuse_unsupported(message, "e")
    return ensemble(message)


ONE = step("a", {"i": "x"}, {"o": "y"})


@pytest.mark.parametrize(
    ("steps", "more", "sentence"),
    [
        pytest.param([], "", "must have a step", id="no step"),
        pytest.param(
            [step("", {"i": "x"}, {"o": "y"})], "", "step 1 must have a model_name", id="a step without a model"
        ),
        pytest.param([step("a", {}, {"o": "y"})], "", "step 1 ('a') must have an input_map", id="no inputs"),
        pytest.param([step("a", {"i": "x"}, {})], "", "step 1 ('a') must have an output_map", id="no outputs"),
        pytest.param([step("a", {"i": ""}, {"o": "y"})], "", "an input_map has an empty value", id="an empty name"),
        pytest.param(
            [step("a", {"i": "x"}, {"o": "y"}, "model_version: -2")], "", "model_version must be -1", id="no version"
        ),
        pytest.param(
            [step("a", {"i": "x"}, {"o": "y"}, 'model_namespace: "n"')],
            "",
            "'ensemble_scheduling.step.model_namespace'",
            id="name spaces",
        ),
        pytest.param(
            [ONE, step("b", {"i": "x"}, {"o": "y"})],
            "",
            "step 2 ('b') makes tensor 'y', which is made before",
            id="twice",
        ),
        pytest.param(
            [step("a", {"i": "x"}, {"o": "y", "p": "x"})],
            "",
            "makes tensor 'x', which is an input of the ensemble",
            id="an input",
        ),
        pytest.param(
            [step("a", {"i": "x", "j": "z"}, {"o": "y"})],
            "",
            "tensor 'z' is taken by a step, but no step makes it",
            id="from nowhere",
        ),
        pytest.param(
            [step("a", {"i": "x", "j": "v"}, {"o": "u"}), step("b", {"i": "u"}, {"o": "v", "p": "y"})],
            "",
            "the steps of 'a', 'b' wait for each other's tensors",
            id="a cycle",
        ),
        pytest.param(
            [step("a", {"i": "x"}, {"o": "z"})], "", "output 'y' is made by no step", id="an output that nobody makes"
        ),
        pytest.param(
            [ONE],
            'input { name: "w" data_type: TYPE_FP32 dims: [4] }',
            "input 'w' is taken by no step",
            id="an unused input",
        ),
        pytest.param(
            [ONE],
            'output { name: "x" data_type: TYPE_FP32 dims: [4] }',
            "output 'x' is made by no step",
            id="an input as output",
        ),
        pytest.param([ONE], "instance_group { count: 2 }", "does not go with instance_group", id="instances"),
        pytest.param([ONE], "optimization { graph { level: 1 } }", "does not go with optimization", id="optimization"),
        pytest.param([ONE], 'model_warmup { name: "w" }', "does not go with model_warmup", id="warm-up"),
        pytest.param([ONE], 'backend: "onnxruntime"', "does not go with backend", id="a backend"),
        pytest.param([ONE], 'platform: "onnxruntime_onnx"', "needs platform 'ensemble'", id="another platform"),
        pytest.param(
            [ONE], "model_transaction_policy { decoupled: true }", "decoupled model is not supported", id="decoupled"
        ),
    ],
)
def test_an_ensemble_that_makes_no_sense_is_refused(steps: list[str], more: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        parsed(*steps, more=more)
    assert str(caught.value).startswith("model 'e': ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        pytest.param(f"{X[:-1]} reshape {{ shape: [2, 2] }} }} {Y}", "'x' has a reshape", id="a reshape"),
        pytest.param(f"{X[:-1]} optional: true }} {Y}", "input 'x' is optional", id="an optional input"),
    ],
)
def test_tensors_of_an_ensemble_are_plain(tensors: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        parsed(ONE, tensors=tensors)


def test_the_platform_alone_is_no_ensemble() -> None:
    with pytest.raises(ModelError, match="platform 'ensemble' needs ensemble_scheduling"):
        ensemble(text_format.Parse('name: "e" platform: "ensemble"', proto.ModelConfig()))
    assert ensemble(proto.ModelConfig(name="m")) is None


def test_steps_are_put_into_an_order_in_which_they_can_run() -> None:
    found = parsed(
        step("c", {"i": "v", "j": "u"}, {"o": "y"}, "model_version: 3"),
        step("b", {"i": "u"}, {"o": "v"}),
        step("a", {"i": "x"}, {"o": "u"}, ""),
        more='platform: "ensemble"',
    )
    assert found is not None
    assert [(one.model, one.version) for one in found.steps] == [("a", ""), ("b", ""), ("c", "3")]
