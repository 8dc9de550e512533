"""What of the V2 protocol and of Triton Inference Server the runtime offers, row by row.

`python -m tests.serving_runtime.compatibility` prints docs/reference/compatibility.md. Tests name the rows they prove
by `@pytest.mark.feature("C9")`; a row that claims something without such a test fails test_compatibility.py.
"""

from typing import NamedTuple

INTRODUCTION = """\
# Compatibility

What `fairlead-serve` offers of the V2 inference protocol (Open Inference Protocol) and of Triton Inference Server's
extensions, configuration, metrics and flags. Every row that says yes or partly has a test of its own in
`tests/serving_runtime/`, named by the row's id. Flags are in [serving-runtime.md](serving-runtime.md).
"""


class Row(NamedTuple):
    """One feature. `offered` is yes, partly or no; `note` says how far (partly) or why not (no)."""

    id: str
    feature: str
    offered: str
    note: str = ""


SECTIONS: dict[str, tuple[Row, ...]] = {
    "Protocol": (
        Row("P1", "server live", "yes"),
        Row("P2", "server ready, `--strict-readiness`", "yes"),
        Row("P3", "model ready", "yes"),
        Row("P4", "server metadata", "yes"),
        Row("P5", "model metadata", "yes"),
        Row("P6", "infer over HTTP", "yes"),
        Row("P7", "infer over gRPC, raw and typed contents", "yes"),
        Row("P8", "versions in the URL", "yes"),
        Row("P9", "all datatypes, BF16 too", "yes", "FP16 and BF16 are JSON numbers too, which Triton refuses"),
        Row("P10", "nested or flat `data`", "yes"),
        Row("P11", "error mapping", "yes"),
        Row("P12", "`grpc.health.v1.Health`", "yes", "`Check` and `Watch`"),
        Row("P13", "`ModelStreamInfer`", "yes"),
        Row("P14", "OpenAPI of the data plane", "yes", "`GET /v2/docs` and per model, with OpenAPI documents"),
        Row("P15", "list of all models", "yes", "`GET /v2/models`, names only, and `POST /v2/repository/index`"),
        Row("P16", "compressed bodies", "yes", "gzip and deflate, both directions"),
        Row("P17", "IPv6", "yes", "HTTP, gRPC and metrics; by default beside IPv4"),
        Row(
            "V1a",
            "V1 predict",
            "yes",
            "predict, models and versions; not version labels, `:classify`, `:regress`",
        ),
        Row(
            "V1b",
            "V1 explain",
            "yes",
            "of models in Python that have `explain`; or by an [explainer](explainers.md) beside it",
        ),
    ),
    "Extensions": (
        Row("E1", "binary tensors in requests", "yes"),
        Row("E2", "binary tensors in answers", "yes"),
        Row("E3", "raw binary request without JSON", "yes"),
        Row("E4", "classification", "yes"),
        Row("E5", "repository index", "yes"),
        Row("E6", "load and reload", "yes"),
        Row("E7", "unload", "yes"),
        Row("E8", "model configuration", "yes"),
        Row("E9", "statistics", "yes"),
        Row("E10", "trace settings", "yes", "Triton's JSON file, or OpenTelemetry spans, which hold no tensors"),
        Row("E11", "log settings", "yes"),
        Row("E12", "system shared memory", "yes", "with `--allow-client-shm=true`"),
        Row("E13", "CUDA shared memory", "no", "no GPU execution yet; refused with 501"),
        Row("E14", "priority and timeout per request", "yes"),
        Row("E15", "sequences", "yes"),
        Row(
            "E16",
            "custom parameters and forwarded headers",
            "yes",
            "for models of the operator's own backends; models of ONNX Runtime know no parameters",
        ),
        Row("E17", "`generate` and `generate_stream`", "yes", "also for models that answer once; `infer_stream` too"),
        Row("E18", "decoupled answers", "yes", "over `ModelStreamInfer` and `generate_stream`"),
        Row("E19", "restricted APIs", "yes"),
        Row("E20", "cancellation", "yes", "also of HTTP clients that have gone"),
    ),
    "Model configuration": (
        Row("C1", "`max_batch_size`", "yes"),
        Row("C2", "`input` and `output`", "partly", "not `is_shape_tensor`, `is_non_linear_format_io`"),
        Row("C3", "`name`, `backend`, `platform`", "yes"),
        Row("C4", "`version_policy`", "yes"),
        Row(
            "C5",
            "`instance_group`",
            "partly",
            "`KIND_GPU` and `gpus` are not verified on hardware; not `KIND_MODEL`, `passive`, `host_policy`",
        ),
        Row("C6", "rate limiter", "yes", "resources have no devices on the CPU"),
        Row("C7", "`dynamic_batching`", "yes"),
        Row("C8", "queue policies", "yes"),
        Row("C9", "`sequence_batching`", "partly", "not `iterative_sequence`, `use_growable_memory`, decoupled models"),
        Row("C10", "`ensemble_scheduling`", "partly", "not of decoupled models; `model_namespace` is refused"),
        Row("C11", "`model_warmup`", "yes"),
        Row("C12", "response cache", "partly", "`local`; not of decoupled models, models of sequences and ensembles"),
        Row("C13", "`optimization.graph.level`", "yes"),
        Row("C14", "`gpu_execution_accelerator`", "partly", "of ONNX Runtime; not verified on hardware"),
        Row("C15", "TensorRT provider's parameters", "partly", "not verified on hardware; not `trt_cuda_graph_enable`"),
        Row("C16", "CUDA provider's parameters", "partly", "not verified on hardware; not `enable_cuda_graph`"),
        Row("C17", "`cpu_execution_accelerator`: OpenVINO", "yes", "[with the extra `serving-openvino`](backends.md)"),
        Row("C18", "ONNX Runtime's parameters", "yes"),
        Row(
            "B1",
            "FIL backend: XGBoost and LightGBM models",
            "partly",
            "[by the libraries themselves](backends.md); not `treelite_checkpoint`, not XGBoost's former binary format",
        ),
        Row(
            "B2",
            "MLServer's runtimes: XGBoost, LightGBM, scikit-learn",
            "partly",
            "pickles with `--allow-python-models` only",
        ),
        Row(
            "B3",
            "OpenVINO backend; TensorFlow SavedModel and GraphDef",
            "partly",
            "[on the CPU](backends.md); not strings, BF16, any rank",
        ),
        Row(
            "B4",
            "PyTorch backend: TorchScript, `torch.export`",
            "partly",
            "[on the CPU](backends.md); CUDA is not verified on hardware; not strings",
        ),
        Row(
            "B5", "TensorRT backend: plans", "partly", "[not verified on hardware](backends.md); not shape tensors, FP8"
        ),
        Row("C20", "`model_transaction_policy.decoupled`", "yes", "by backends of one's own, which stream"),
        Row("C21", "ragged batching", "yes"),
        Row(
            "C22",
            "file names, `metric_tags`, agents, metric control",
            "partly",
            "libraries of operators from `--backend-directory` only; buckets of the histogram of first responses only",
        ),
        Row("C23", "`--model-config-name`", "yes"),
        Row("C24", "auto-completed configuration", "yes"),
        Row("C25", "model control modes", "partly", "not `--model-namespacing`, `--model-load-gpu-limit`"),
        Row("C26", "several repositories, object stores", "partly", "not Azure Storage (`as://`)"),
    ),
    "Metrics": (
        Row("M1", "request counters", "yes"),
        Row("M2", "duration counters", "yes"),
        Row("M3", "first response histogram", "yes", "by `--metrics-config histogram_latencies=true`"),
        Row("M4", "latency summaries", "yes"),
        Row("M5", "GPU metrics", "yes", "by NVML, MIG slices too; not verified on hardware"),
        Row(
            "M6",
            "CPU, memory pool and cache metrics",
            "partly",
            "`nv_cpu_*`, `nv_cache_*`; there is no pinned memory",
        ),
    ),
}


def page() -> str:
    """Return the page in Markdown."""
    lines = [INTRODUCTION]
    for title, rows in SECTIONS.items():
        lines += [f"## {title}", "| row | feature | offered | how far, or why not |", "| --- | --- | --- | --- |"]
        lines += [f"| {row.id} | {row.feature} | {row.offered} | {row.note} |" for row in rows]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201
