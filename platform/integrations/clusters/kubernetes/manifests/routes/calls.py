"""Allowed V2 and V1 calls of a gateway: infer and read-only calls, none that changes a server. Pure."""

GRPC_INFERENCE = "inference.GRPCInferenceService"
GRPC_INFER = (GRPC_INFERENCE, "ModelInfer")
GRPC_OTHERS = (
    (GRPC_INFERENCE, "ModelStreamInfer"),
    (GRPC_INFERENCE, "ServerLive"),
    (GRPC_INFERENCE, "ServerReady"),
    (GRPC_INFERENCE, "ServerMetadata"),
    (GRPC_INFERENCE, "ModelReady"),
    (GRPC_INFERENCE, "ModelMetadata"),
    (GRPC_INFERENCE, "ModelConfig"),
    (GRPC_INFERENCE, "ModelStatistics"),
    ("grpc.health.v1.Health", "Check"),
    ("grpc.health.v1.Health", "Watch"),
)


def infer_paths(model: str, version: str = "") -> list[str]:
    """Return the paths of inference, which take POST."""
    at = f"/versions/{version}" if version else ""
    calls = [f"/v2/models/{model}{at}/{call}" for call in ("infer", "generate", "generate_stream")]
    return [*calls, f"/v1/models/{model}{at}:predict"]


def meta_paths(model: str, version: str = "") -> list[str]:
    """Return the paths of health and metadata, which take GET and HEAD."""
    at = f"/versions/{version}" if version else ""
    of_model = [f"/v2/models/{model}{at}", f"/v2/models/{model}{at}/ready", f"/v1/models/{model}{at}"]
    return of_model if version else [*of_model, "/v2", "/v2/health/live", "/v2/health/ready"]


def fact_paths(model: str, version: str = "") -> list[str]:
    """Return the paths of configuration and statistics, which take GET and HEAD."""
    at = f"/versions/{version}" if version else ""
    of_model = [f"/v2/models/{model}{at}/config", f"/v2/models/{model}{at}/stats"]
    return of_model if version else [*of_model, "/v2/models/stats"]
