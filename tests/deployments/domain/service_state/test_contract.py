"""What a service serves under its file's `config`, and what a rollout changes of it."""

from typing import Any

import pytest

from deployments.domain.service_state.contract import Contract, Served, contract_between

SIGNATURE = {
    "inputs": [
        {"name": "image", "datatype": "FP32", "shape": [-1, 64]},
        {"name": "mask", "datatype": "BOOL", "shape": [-1, 64], "optional": True},
    ],
    "outputs": [
        {"name": "label", "datatype": "INT64", "shape": [-1, 1]},
        {"name": "scores", "datatype": "FP32", "shape": [-1, 10]},
    ],
    "max_batch_size": 8,
}
LIVE = Served("digits version 1", SIGNATURE, {})


def under(**config: Any) -> Contract:
    return contract_between(LIVE, Served("digits version 1", SIGNATURE, config))


@pytest.mark.parametrize(
    ("config", "breaks"),
    [
        pytest.param({}, (), id="nothing is laid over it"),
        pytest.param({"instance_group": [{"count": 2}]}, (), id="what clients do not see"),
        pytest.param({"max_batch_size": 2}, ("a request may have 2 rows, 8 before",), id="fewer rows in a request"),
        pytest.param({"max_batch_size": 0}, (), id="the runtime finds the size itself"),
        pytest.param(
            {"output": [{"name": "label"}]}, ("output 'scores' is not given any more",), id="outputs that are left out"
        ),
        pytest.param(
            {"input": [{"name": "image"}]}, ("input 'mask' is not taken any more",), id="an optional input left out"
        ),
        pytest.param(
            {"input": [{"name": "image", "dims": [32]}, {"name": "mask"}]},
            ("input 'image' takes [-1,32], clients send [-1,64]",),
            id="other dims, without the batch dimension",
        ),
    ],
)
def test_what_the_files_config_changes(config: dict[str, Any], breaks: tuple[str, ...]) -> None:
    assert under(**config).breaks == breaks


def test_both_sides_are_compared_as_they_are_served() -> None:
    narrowed = Served("digits version 1", SIGNATURE, {"max_batch_size": 2})
    assert contract_between(narrowed, narrowed) == Contract()
    assert contract_between(narrowed, LIVE).notes == ("a request may have 8 rows, 2 before",)


@pytest.mark.parametrize("side", ["live", "new"])
def test_a_version_whose_signature_is_not_known_is_told_and_refused_nothing(side: str) -> None:
    unknown = Served("digits version 7", {}, {})
    found = contract_between(*((unknown, LIVE) if side == "live" else (LIVE, unknown)))
    assert found == Contract(unknown="the signature of digits version 7 is not known, so nothing could be compared")


def test_what_a_rollout_keeps_is_read_back() -> None:
    contract = Contract(("input 'x' is gone",), ("output 'y' is new",), "", "alice", "nobody sends x")
    assert Contract.stored(contract.as_json()) == contract
    assert Contract.stored({}) == Contract()
