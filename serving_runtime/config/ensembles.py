"""Ensembles: ensemble_scheduling of config.pbtxt as frozen values: steps of models, connected by tensors.

The ensemble itself is checked here; whether its models match is known only when they are loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.config.support import ENSEMBLE_PLATFORM as PLATFORM

_NOT_HERE = ("instance_group", "optimization", "model_warmup", "backend")


@dataclass(frozen=True, slots=True)
class Step:
    """One model of an ensemble.

    Attributes:
        version: empty for the default one of the model's policy.
        inputs: the model's inputs, each with the ensemble's tensor for it.
        outputs: the model's outputs, each with the ensemble's tensor from it.
    """

    model: str
    version: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The steps in topological order: each follows the producers of its inputs."""

    steps: tuple[Step, ...]


def ensemble(config: Any) -> Ensemble | None:
    """Return the ensemble in a ModelConfig message, None for other models; raises ModelError."""
    where = f"model '{config.name}': ensemble_scheduling"
    if not config.HasField("ensemble_scheduling"):
        if config.platform == PLATFORM:
            raise ModelError(f"model '{config.name}': platform '{PLATFORM}' needs ensemble_scheduling")
        return None
    for field in _NOT_HERE:
        if field in {descriptor.name for descriptor, _ in config.ListFields()}:
            raise ModelError(f"{where} does not go with {field}: that is for the models of its steps")
    if config.platform not in ("", PLATFORM):
        raise ModelError(f"{where} needs platform '{PLATFORM}', found '{config.platform}'")
    if config.model_transaction_policy.decoupled:
        raise ModelError(f"{where} of a decoupled model is not supported")
    for tensor in (*config.input, *config.output):
        if tensor.HasField("reshape"):
            raise ModelError(f"{where}: '{tensor.name}' has a reshape; that is for the models of its steps")
    for tensor in config.input:
        if tensor.optional:
            raise ModelError(f"{where}: input '{tensor.name}' is optional, which an ensemble's cannot be")
    steps = [_step(message, number, where) for number, message in enumerate(config.ensemble_scheduling.step, 1)]
    if not steps:
        raise ModelError(f"{where} must have a step")
    given = [tensor.name for tensor in config.input]
    asked = [tensor.name for tensor in config.output]
    _check_tensors(steps, given, asked, where)
    return Ensemble(_ordered(steps, given, where))


def _step(message: Any, number: int, where: str) -> Step:
    where = f"{where}: step {number}"
    if not message.model_name:
        raise ModelError(f"{where} must have a model_name")
    where = f"{where} ('{message.model_name}')"
    if message.model_version < -1:
        raise ModelError(f"{where}: model_version must be -1 for the latest, or >= 1, found {message.model_version}")
    for field in ("input_map", "output_map"):
        mapping = getattr(message, field)
        if not mapping:
            raise ModelError(f"{where} must have an {field}")
        if not all(mapping[key] for key in mapping):
            raise ModelError(f"{where}: an {field} has an empty value")
    version = str(message.model_version) if message.model_version > 0 else ""
    maps = [dict(sorted(mapping.items())) for mapping in (message.input_map, message.output_map)]  # a map is unordered
    return Step(message.model_name, version, *maps)


def _check_tensors(steps: Sequence[Step], given: Sequence[str], asked: Sequence[str], where: str) -> None:
    """Raise ModelError unless every tensor has one producer, and the ensemble's own are used and produced."""
    made = set(given)
    for number, step in enumerate(steps, 1):
        for tensor in step.outputs.values():
            if tensor in made:
                source = "an input of the ensemble" if tensor in given else "made before"
                raise ModelError(f"{where}: step {number} ('{step.model}') makes tensor '{tensor}', which is {source}")
            made.add(tensor)
    taken = {tensor for step in steps for tensor in step.inputs.values()}
    for name in sorted(taken - made):
        raise ModelError(f"{where}: tensor '{name}' is taken by a step, but no step makes it and it is no input")
    for name in given:
        if name not in taken:
            raise ModelError(f"{where}: input '{name}' is taken by no step")
    for name in asked:
        if name not in made - set(given):
            raise ModelError(f"{where}: output '{name}' is made by no step")


def _ordered(steps: Sequence[Step], given: Sequence[str], where: str) -> tuple[Step, ...]:
    """Return the steps in topological order; raises ModelError for a cycle."""
    known, ordered, left = set(given), [], list(steps)
    while left:
        ready = [step for step in left if known.issuperset(step.inputs.values())]
        if not ready:
            names = ", ".join(f"'{step.model}'" for step in left)
            raise ModelError(f"{where}: the steps of {names} wait for each other's tensors")
        ordered += ready
        left = [step for step in left if step not in ready]
        known.update(tensor for step in ready for tensor in step.outputs.values())
    return tuple(ordered)
