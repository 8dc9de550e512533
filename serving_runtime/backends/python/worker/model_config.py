"""Auto-complete of a model's config: pb_utils.ModelConfig, which `auto_complete_config` fills in."""

from collections.abc import Mapping
from typing import Any

from serving_runtime.common.datatypes import FROM_CONFIG_NAME

_SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")
_TENSOR_FIELDS = {"input": ("name", "data_type", "dims", "optional"), "output": ("name", "data_type", "dims")}


class ModelConfig:
    """A model's config as plain values. config.pbtxt takes precedence; contradicting it raises ValueError."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = dict(config)

    def as_dict(self) -> dict[str, Any]:
        return self._config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        written = self._config.get("max_batch_size", 0)
        if written > max_batch_size:
            raise ValueError(f"config.pbtxt has max_batch_size {written}, auto_complete_config sets {max_batch_size}")
        self._config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Enable the dynamic batcher, unless config.pbtxt names a scheduler."""
        if not any(scheduler in self._config for scheduler in _SCHEDULERS):
            self._config["dynamic_batching"] = {}

    def add_input(self, input: Mapping[str, Any]) -> None:
        self._add("input", input)

    def add_output(self, output: Mapping[str, Any]) -> None:
        self._add("output", output)

    def set_model_transaction_policy(self, transaction_policy_dict: Mapping[str, Any]) -> None:
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(f"model_transaction_policy has no field '{key}', it has decoupled")
        decoupled = bool(transaction_policy_dict.get("decoupled", False))
        written = self._config.get("model_transaction_policy")
        if written is not None and written.get("decoupled", False) != decoupled:
            raise ValueError("config.pbtxt and auto_complete_config do not agree on model_transaction_policy")
        self._config["model_transaction_policy"] = {"decoupled": decoupled}

    def _add(self, kind: str, given: Mapping[str, Any]) -> None:
        for key in given:
            if key not in _TENSOR_FIELDS[kind]:
                raise ValueError(f"an {kind} has no field '{key}', it has {', '.join(_TENSOR_FIELDS[kind])}")
        for key in ("name", "data_type", "dims"):
            if key not in given:
                raise ValueError(f"an {kind} must have a {key}, found {dict(given)}")
        if given["data_type"] not in FROM_CONFIG_NAME:
            raise ValueError(f"{kind} '{given['name']}' has data_type {given['data_type']!r}, such as TYPE_FP32 is one")
        tensors = self._config.setdefault(kind, [])
        written = next((tensor for tensor in tensors if tensor["name"] == given["name"]), None)
        if written is None:
            tensors.append({**given, "dims": list(given["dims"])})
            return
        for key in ("data_type", "dims"):
            found = list(written[key]) if key == "dims" else written[key]
            wanted = list(given[key]) if key == "dims" else given[key]
            if found and found not in (wanted, "TYPE_INVALID"):
                raise ValueError(
                    f"{kind} '{given['name']}' has {key} {found} in config.pbtxt, {wanted} by auto_complete_config"
                )
            written[key] = wanted
