"""JSON schemas of HTTP requests and responses, as the OpenAPI document's components (V2: required API)."""

from typing import Any

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import ModelTensor

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL: Schema = {"type": ["string", "integer", "null"]}
_PARAMETERS: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
    "description": "Parameters of the protocol and the model's own.",
}
_SHAPE: Schema = {"type": "array", "items": {"type": "integer"}}
_DATATYPE: Schema = {"type": "string", "enum": list(DATATYPES)}
_DATA: Schema = {"type": "array", "description": "Tensor data, nested like the tensor or flat in row-major order."}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _of(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_OUTPUT_REQUEST = _object(
    {"name": _TEXT},
    {"parameters": _object({}, {"binary_data": _FLAG, "classification": _COUNT, "shared_memory_region": _TEXT})},
)

COMPONENTS: dict[str, Schema] = {
    "Error": _object({"error": _TEXT}),
    "Live": _object({"live": _FLAG}),
    "Ready": _object({"ready": _FLAG}, {"name": _TEXT}),
    "Server": _object({"name": _TEXT, "version": _TEXT, "extensions": _list(_TEXT)}),
    "Models": _object({"models": _list(_TEXT)}),
    "Tensor": _object({"name": _TEXT, "datatype": _DATATYPE, "shape": _SHAPE}),
    "Model": _object(
        {
            "name": _TEXT,
            "versions": _list(_TEXT),
            "platform": _TEXT,
            "inputs": _list(_of("Tensor")),
            "outputs": _list(_of("Tensor")),
        }
    ),
    "Config": _object({"name": _TEXT}),
    "Statistics": _object({"model_stats": _list({"type": "object"})}),
    "IndexRequest": _object({}, {"ready": _FLAG}),
    "Index": _list(_object({"name": _TEXT}, {"version": _TEXT, "state": _TEXT, "reason": _TEXT})),
    "LoadRequest": _object({}, {"parameters": {"type": "object", "additionalProperties": _TEXT}}),
    "UnloadRequest": _object({}, {"parameters": _object({}, {"unload_dependents": _FLAG})}),
    "InferInput": _object(
        {"name": _TEXT, "datatype": _DATATYPE, "shape": _SHAPE}, {"data": _DATA, "parameters": _PARAMETERS}
    ),
    "InferRequest": _object(
        {"inputs": _list(_of("InferInput"))},
        {"id": _TEXT, "parameters": _PARAMETERS, "outputs": _list(_OUTPUT_REQUEST)},
    ),
    "InferResponse": _object(
        {
            "model_name": _TEXT,
            "model_version": _TEXT,
            "outputs": _list(
                _object(
                    {"name": _TEXT, "datatype": _DATATYPE, "shape": _SHAPE}, {"data": _DATA, "parameters": _PARAMETERS}
                )
            ),
        },
        {"id": _TEXT, "parameters": _PARAMETERS},
    ),
    "GenerateRequest": _object({}, {"id": _TEXT, "text_input": _TEXT, "parameters": _PARAMETERS}),
    "GenerateResponse": _object({"model_name": _TEXT, "model_version": _TEXT}, {"id": _TEXT, "text_output": {}}),
    "PredictRequest": _object({}, {"instances": {"type": "array"}, "inputs": {}, "signature_name": _TEXT}),
    "ExplainResponse": _object({}, {"explanations": {}}),
    "PredictResponse": _object({}, {"predictions": {"type": "array"}, "outputs": {}}),
    "V1Model": _object({"name": _TEXT, "ready": _FLAG, "model_version_status": _list({"type": "object"})}),
    "Region": _object({"name": _TEXT, "key": _TEXT, "offset": _COUNT, "byte_size": _COUNT}),
    "Regions": _list(_of("Region")),
    "RegisterRequest": _object({"key": _TEXT, "byte_size": _COUNT}, {"offset": _COUNT}),
    "LogSettings": _object(
        {},
        {
            "log_file": _TEXT,
            "log_info": _FLAG,
            "log_warning": _FLAG,
            "log_error": _FLAG,
            "log_verbose_level": _COUNT,
            "log_format": {"type": "string", "enum": ["default", "ISO8601", "json"]},
        },
    ),
    "TraceSettings": _object(
        {},
        {
            "trace_level": {"type": ["array", "string", "null"], "items": {"enum": ["OFF", "TIMESTAMPS", "TENSORS"]}},
            **dict.fromkeys(("trace_rate", "trace_count", "log_frequency"), _NUMBER_OR_NULL),
            **dict.fromkeys(("trace_file", "trace_mode", "url"), _TEXT),
        },
    ),
    "Object": {"type": "object"},
}


def components_of(config: ModelConfig) -> dict[str, Schema]:
    """Return the components, with the schemas of requests to one model."""
    batch = [-1] if config.max_batch_size else []
    count = len(config.inputs)
    names = [tensor.name for tensor in config.outputs]
    output = {**_OUTPUT_REQUEST, "properties": {**_OUTPUT_REQUEST["properties"], "name": {"enum": names}}}
    return {
        **COMPONENTS,
        "InferInput": {"oneOf": [_input(tensor, batch) for tensor in config.inputs]},
        "InferRequest": _object(
            {"inputs": {**_list(_of("InferInput")), "minItems": count, "maxItems": count}},
            {"id": _TEXT, "parameters": _PARAMETERS, "outputs": _list(output)},
        ),
        "GenerateRequest": _object({}, {**{tensor.name: {} for tensor in config.inputs}, "parameters": _PARAMETERS}),
    }


def _input(tensor: ModelTensor, batch: list[int]) -> Schema:
    """Return the schema of one input; JSON Schema checks a shape only by its length and fixed dimensions."""
    dims = [*batch, *tensor.dims]
    shape = {
        "type": "array",
        "minItems": len(dims),
        "maxItems": len(dims),
        "prefixItems": [{"type": "integer", "minimum": 1} if dim == -1 else {"const": dim} for dim in dims],
        "description": f"Shape {dims}; -1 is any size.",
    }
    return _object(
        {"name": {"const": tensor.name}, "datatype": {"const": tensor.datatype.name}, "shape": shape},
        {"data": _DATA, "parameters": _PARAMETERS},
    )
