"""The service file (KServe's InferenceService, as far as Fairlead honours it) as a value. Pure.

A field that cannot be honoured is refused by its dotted name, never ignored (docs/reference/rollouts.md lists those
that are).
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from common.errors import InvalidInput
from common.names import check_dns_label
from common.uris import parse
from deployments.document import Document
from deployments.scaling import Scaling, parse_scaling, put_scaling
from integrations.clusters.base import Resources

API_VERSION = "serving.kserve.io/v1beta1"
KIND = "InferenceService"
FORMATS = ("onnx",)
STORAGE_URI = "spec.predictor.model.storageUri"
CONFIG = "spec.predictor.model.config"
# A revision is called `<service>-00001`, which must be a DNS label too.
LONGEST_NAME = 63 - len("-00001")

# Fields of KServe's InferenceService that its users write, by what does the same here.
_INSTEAD = {
    "canaryTrafficPercent": "a policy says the weights of a rollout, and spec.rollout.policy names it",
    "protocolVersion": "V1 and V2 are served side by side, so leave it out",
    "resources": "resources belong to spec.predictor.model",
    "env": "env belongs to spec.predictor.model",
}

# In UTF-8 below the 128 KiB that Linux gives one variable.
_MAX_ENV_CHARACTERS = 30_000
_MODEL_URI = re.compile(r"models:/[^/@]+(/\d{1,9}|@[^/@]+)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")
_CPU_UNITS = {"": Decimal(1), "m": Decimal("0.001")}
_MEMORY_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGT", start=1)
}


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What a service file asks for.

    Attributes:
        storage_uri: `models:/NAME/VERSION`, `models:/NAME@ALIAS`, or in its normal form the URI of files elsewhere.
        model_config: fields of a Triton ModelConfig laid over the model's own.
        policy: the rollout policy for later changes; None moves all traffic as soon as a new revision is ready.
    """

    namespace: str
    name: str
    storage_uri: str
    scaling: Scaling
    env: Mapping[str, str]
    resources: Resources
    model_config: Mapping[str, object]
    policy: str | None

    @property
    def follows_alias(self) -> bool:
        """Return whether the version is found by an alias, which may move."""
        return not self.is_imported and "@" in self.storage_uri

    @property
    def is_imported(self) -> bool:
        """Return whether the files are elsewhere and become a version first."""
        return "://" in self.storage_uri


def parse_service(value: object, *, namespace: str | None = None, name: str | None = None) -> ServiceSpec:
    """Return what a service file says.

    Args:
        namespace, name: what the file must say, where its address says so; it may then leave them out.

    Raises:
        InvalidInput: with one sentence and the dotted name of the field at fault.
    """
    document = Document.of(value, "the service file")
    _check_constant(document, "apiVersion", API_VERSION)
    _check_constant(document, "kind", KIND)
    metadata = document.optional("metadata") or Document({}, "metadata")
    found_name = _agreed(metadata, "name", name, default=None)
    found_namespace = _agreed(metadata, "namespace", namespace, default="default")
    spec = document.document("spec")
    predictor = spec.document("predictor")
    model = predictor.document("model")
    rollout = spec.optional("rollout")
    result = ServiceSpec(
        namespace=check_dns_label(found_namespace, field="metadata.namespace"),
        name=_service_name(found_name),
        storage_uri=_storage_uri(model),
        scaling=parse_scaling(predictor),
        env=_env(model),
        resources=_resources(model),
        model_config=_config(model),
        policy=None if rollout is None else rollout.text("policy"),
    )
    for part in (document, metadata, spec, predictor, model, *([rollout] if rollout is not None else [])):
        part.refuse_unknown(_INSTEAD)
    return result


def imported_model(namespace: str, name: str) -> str:
    """Return the name of the model that holds the versions imported for a service; it is no other service's."""
    return f"{namespace}.{name}"


def _check_constant(document: Document, field: str, expected: str) -> None:
    if (found := document.text(field)) != expected:
        raise InvalidInput(f"{field} is {found[:60]!r}; expected {expected}", field=field)


def _agreed(metadata: Document, field: str, asked: str | None, *, default: str | None) -> str:
    found = metadata.text(field, default=asked or default)
    if asked is not None and found != asked:
        raise InvalidInput(
            f"metadata.{field} is {found[:80]!r}, but the service is put as {asked!r}; give both the same {field}",
            field=f"metadata.{field}",
        )
    return found


def _service_name(name: str) -> str:
    check_dns_label(name, field="metadata.name")
    if len(name) > LONGEST_NAME:
        raise InvalidInput(
            f"metadata.name has {len(name)} characters; a service's may have {LONGEST_NAME}, for its revisions add six",
            field="metadata.name",
        )
    return name


def _storage_uri(model: Document) -> str:
    model_format = model.document("modelFormat")
    field = model_format.path("name")
    if (found := model_format.text("name")) not in FORMATS:
        raise InvalidInput(f"{field} is {found[:60]!r}; this release serves {' and '.join(FORMATS)}", field=field)
    model_format.refuse_unknown()
    uri = model.text("storageUri")
    if _MODEL_URI.fullmatch(uri):
        return uri
    if "://" not in uri:
        raise InvalidInput(
            f"{STORAGE_URI} is {uri[:200]!r}; expected a registered model (models:/NAME/VERSION or models:/NAME@ALIAS) "
            "or files elsewhere (http://, https://, s3://, gs://, file://)",
            field=STORAGE_URI,
        )
    address = parse(uri, field=STORAGE_URI)
    if address.query:
        raise InvalidInput(
            f"{STORAGE_URI} has a query, which may hold a secret and would be shown to everybody; import it by "
            "`fairlead models push URI` and name the version",
            field=STORAGE_URI,
        )
    return address.url


def _env(model: Document) -> dict[str, str]:
    env: dict[str, str] = {}
    for entry in model.documents("env") if model.raw("env", None) is not None else []:
        name = entry.text("name")
        if not _ENV_NAME.fullmatch(name):
            raise InvalidInput(
                f"{entry.path('name')} is {name[:60]!r}, which is no name of a variable", field=entry.path("name")
            )
        if name in env:
            raise InvalidInput(f"{entry.path('name')} is {name!r}, which is there twice", field=entry.path("name"))
        env[name] = entry.text("value")
        entry.refuse_unknown()
    if (characters := sum(len(name) + len(value) for name, value in env.items())) > _MAX_ENV_CHARACTERS:
        raise InvalidInput(
            f"{model.path('env')} has {characters} characters in all; a process is given at most {_MAX_ENV_CHARACTERS}",
            field=model.path("env"),
        )
    return env


def _config(model: Document) -> dict[str, object]:
    config = model.raw("config", {})
    Document.of(config, model.path("config"), model.path("config"))
    if "name" in config:
        raise InvalidInput(
            f"{model.path('config.name')} cannot be set; clients ask for the service's name",
            field=model.path("config.name"),
        )
    return dict(config)


def _resources(model: Document) -> Resources:
    resources = model.optional("resources")
    if resources is None:
        return Resources()
    requests = resources.optional("requests") or Document({}, resources.path("requests"))
    cpu, memory = requests.raw("cpu", None), requests.raw("memory", None)
    result = Resources(
        cpu_cores=None if cpu is None else float(_quantity(cpu, _CPU_UNITS, requests.path("cpu"), "500m or 2")),
        memory_bytes=None
        if memory is None
        else int(_quantity(memory, _MEMORY_UNITS, requests.path("memory"), "512Mi")),
    )
    requests.refuse_unknown()
    resources.refuse_unknown()
    return result


def _quantity(value: object, units: Mapping[str, Decimal | int], field: str, example: str) -> Decimal:
    """Return a Kubernetes quantity as a number of its base unit."""
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    try:
        amount = Decimal(match[1]) * units[match[2]] if match else Decimal(0)
    except (KeyError, InvalidOperation):
        amount = Decimal(0)
    if isinstance(value, bool) or not 0 < amount < 2**60:
        raise InvalidInput(f"{field} is {str(value)[:60]!r}; expected a quantity such as {example}", field=field)
    return amount


@dataclass(frozen=True, slots=True)
class RevisionContent:
    """What a revision serves, as far as a service file says it; without `storage_uri` the file's own stays."""

    storage_uri: str | None
    scaling: Scaling
    env: Mapping[str, str]
    resources: Resources
    model_config: Mapping[str, object]


def file_saying(document: Mapping[str, Any], spec: ServiceSpec, content: RevisionContent) -> dict[str, Any]:
    """Return the service file `document`, which says `spec`, changed where `content` differs."""
    changed = copy.deepcopy(dict(document))
    predictor = changed["spec"]["predictor"]
    model = predictor["model"]
    if content.storage_uri is not None:
        model["storageUri"] = content.storage_uri
    if content.scaling != spec.scaling:
        put_scaling(predictor, content.scaling)
    if dict(content.env) != dict(spec.env):
        model["env"] = [{"name": name, "value": value} for name, value in content.env.items()]
    if dict(content.model_config) != dict(spec.model_config):
        model["config"] = dict(content.model_config)
    if content.resources != spec.resources:
        model["resources"] = {"requests": _requests(content.resources)}
    return changed


def _requests(resources: Resources) -> dict[str, str]:
    cpu = {} if resources.cpu_cores is None else {"cpu": f"{Decimal(str(resources.cpu_cores)):f}"}
    memory = {} if resources.memory_bytes is None else {"memory": str(resources.memory_bytes)}
    return cpu | memory
