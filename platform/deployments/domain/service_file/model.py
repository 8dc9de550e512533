"""Model section of a service file (`spec.predictor.model`): files and configuration. Pure."""

import re

from common.errors import InvalidInput
from common.files.document import Document
from common.uris import parse

# KServe's format names, each with the runtime's platforms.
FORMATS = {
    "onnx": {"onnxruntime_onnx", "openvino"},
    "openvino": {"openvino", "tensorflow_savedmodel", "tensorflow_graphdef"},
    "tensorflow": {"openvino", "tensorflow_savedmodel", "tensorflow_graphdef"},
    "pytorch": {"pytorch_libtorch"},
    "xgboost": {"xgboost", "fil"},
    "lightgbm": {"lightgbm", "fil"},
    "sklearn": {"sklearn"},
    "python": {"python"},
}
FORMAT = "spec.predictor.model.modelFormat.name"
STORAGE_URI = "spec.predictor.model.storageUri"
CONFIG = "spec.predictor.model.config"
EGRESS = "spec.predictor.model.egress"
PATCHES = "spec.patches"

_MODEL_URI = re.compile(r"models:/[^/@]+(/\d{1,9}|@[^/@]+)")


def parse_format(model: Document) -> str:
    model_format = model.document("modelFormat")
    if (found := model_format.text("name")) not in FORMATS:
        model_format.fault("name", f"is {found[:60]!r}; this release serves {', '.join(FORMATS)}")
    model_format.refuse_unknown()
    return found


def format_of(platform: str) -> str:
    """Return KServe's format of a platform; a platform without a format of its own is accepted under any."""
    return next((name for name, platforms in FORMATS.items() if platform in platforms), "onnx")


def check_format(model_format: str, platform: str, version: str) -> None:
    """Raise InvalidInput where `version` is of a platform that only other formats have.

    Platforms without a format of their own, such as an ensemble or an operator's own backend, are accepted under any.
    """
    fitting = [name for name, platforms in FORMATS.items() if platform in platforms]
    if fitting and model_format not in fitting:
        raise InvalidInput(
            f"{FORMAT} is {model_format!r}, but {version} is a model of platform {platform}; "
            f"write {' or '.join(fitting)}",
            field=FORMAT,
        )


def check_storage_uri(uri: str, *, field: str) -> str:
    """Return the URI in its normal form; raises InvalidInput."""
    if _MODEL_URI.fullmatch(uri):
        return uri
    if "://" not in uri:
        raise InvalidInput(
            f"{field} is {uri[:200]!r}; expected a registered model (models:/NAME/VERSION or models:/NAME@ALIAS) "
            "or files elsewhere (http://, https://, s3://, gs://, file://)",
            field=field,
        )
    address = parse(uri, field=field)
    if address.query:
        raise InvalidInput(
            f"{field} has a query, which may hold a secret and would be shown to everybody; import it by "
            "`fairlead models push URI` and name the version",
            field=field,
        )
    return address.url


def parse_egress(model: Document) -> bool | None:
    """Return whether the model's process may open connections; None where the file does not say."""
    return None if model.raw("egress", None) is None else model.flag("egress", default=False)


def parse_config(model: Document) -> dict[str, object]:
    config = model.raw("config", {})
    model.or_empty("config")
    if not model.is_sound("config"):
        return {}
    if "name" in config:
        model.fault("config.name", "cannot be set; clients ask for the service's name")
    return dict(config)
