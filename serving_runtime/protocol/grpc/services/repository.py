"""Model repository extension over gRPC: parameters of RepositoryModelLoad and RepositoryModelUnload (Triton)."""

from typing import Any

from serving_runtime.common.errors import InvalidArgument, Unsupported
from serving_runtime.engine.catalog.load_override import FILE_PREFIX


def load_parameters(request: Any) -> tuple[str | None, dict[str, bytes]]:
    """Return config and files of a RepositoryModelLoadRequest; raises InvalidArgument."""
    _check_repository(request)
    config, files = None, {}
    for name in request.parameters:
        parameter = request.parameters[name]
        choice = parameter.WhichOneof("parameter_choice")
        if name == "config" and choice == "string_param":
            config = parameter.string_param
        elif name.startswith(FILE_PREFIX) and choice == "bytes_param":
            files[name.removeprefix(FILE_PREFIX)] = parameter.bytes_param
        else:
            raise InvalidArgument(
                f"failed to load '{request.model_name}', parameter '{name}' is neither 'config' as string_param "
                "nor 'file:<version>/<file>' as bytes_param"
            )
    return config, files


def unload_dependents(request: Any) -> bool:
    """Return whether a RepositoryModelUnloadRequest includes the parts of an ensemble."""
    _check_repository(request)
    if "unload_dependents" not in request.parameters:
        return False
    parameter = request.parameters["unload_dependents"]
    if parameter.WhichOneof("parameter_choice") != "bool_param":
        raise InvalidArgument("parameter 'unload_dependents' must be a bool_param")
    return bool(parameter.bool_param)


def _check_repository(request: Any) -> None:
    if request.repository_name:
        raise Unsupported(
            f"leave repository_name '{request.repository_name}' out: a model is found by its name, "
            "in whatever repository it is"
        )
