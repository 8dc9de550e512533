"""Custom predictor of a service file (KServe's `spec.predictor.containers`): one container of its author's. Pure.

Its variables and resources are the revision's, as those of a model are; the rest is here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from clusters.domain.resources import AUTO
from common.errors import InvalidInput
from common.files.document import Document
from common.images import parse_image
from deployments.domain.service_file.containers import check_image, is_program, parse_source, parse_words, source_json
from integrations.clusters.base import WHOLE, Resources

FIELD = "spec.predictor.containers"
CONTAINER = f"{FIELD}[0]"
IMAGE = f"{CONTAINER}.image"
PREDICTOR_ENV = f"{CONTAINER}.env"
PORT = 8080  # KServe's ModelServer
_NAMES = ("http", "http1")
_TAKEN = (8000, 8001, 8002)
_LONGEST_PATH = 200
_PATH = re.compile(r"/[!-~]*")
_INSTEAD = {
    "livenessProbe": "Fairlead restarts a container that takes no connections at its port",
    "securityContext": "pods satisfy the Pod Security Standard restricted; patch them where that has to be otherwise",
    "startupProbe": "a container has the cluster file's time to start, and readinessProbe says when it is ready",
    "storageUri": "a custom predictor's image has its model; or write spec.predictor.model",
    "volumeMounts": "a custom predictor has /tmp to write to and nothing else",
}
_OF_MODELS = {
    "batcher": "batches are put together by the runtime of models; let the container do it",
    "logger": "requests are reported by the runtime of models; let the container do it",
}


class Protocol(StrEnum):
    """The inference protocol that a container speaks: KServe's V1 or the Open Inference Protocol, V2, over HTTP."""

    V1 = "v1"
    V2 = "v2"


@dataclass(frozen=True, slots=True)
class CustomPredictor:
    """The container of a custom predictor.

    Attributes:
        image: with its digest, `REPOSITORY@sha256:…`; of a program its record, `NAME@sha256:…`, and empty until its
            file is applied.
        command, args: instead of the image's own; empty keeps those.
        port: where it takes HTTP requests.
        ready_path: what answers 2xx once it is ready; empty where its protocol says that.
        working_dir: the folder of a program; empty for an image.
    """

    image: str
    protocol: Protocol = Protocol.V2
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    port: int = PORT
    ready_path: str = ""
    working_dir: str = ""

    @property
    def digest(self) -> str:
        """Return the digest of its image, or of its applied program."""
        return parse_image(self.image).digest


def container_of(predictor: Document) -> Document | None:
    """Return the container of `spec.predictor`; None where it has a model."""
    if predictor.raw("containers", None) is None:
        return None
    if predictor.raw("model", None) is not None:
        predictor.fault("containers", "and spec.predictor.model both say what answers requests; leave out one of them")
    containers = predictor.documents("containers")
    if len(containers) != 1:
        predictor.fault("containers", f"has {len(containers)} entries; a custom predictor is one container")
        return predictor.or_empty("no container")
    return containers[0]


def parse_custom(predictor: Document, container: Document) -> CustomPredictor:
    """Return the custom predictor, without its variables and resources."""
    for name, instead in _OF_MODELS.items():
        if predictor.raw(name, None) is not None:
            predictor.fault(name, f"cannot be honoured with a custom predictor: {instead}")
    container.text("name", default="")
    port = PORT if is_program(container) else _port(container)
    image, working_dir = parse_source(container, _check_image)
    result = CustomPredictor(
        image=image,
        protocol=_protocol(predictor, container),
        command=parse_words(container, "command"),
        args=parse_words(container, "args"),
        port=port,
        ready_path=_ready_path(container, None if is_program(container) else port),
        working_dir=working_dir,
    )
    container.refuse_unknown(_INSTEAD)
    return result


def check_resources(container: Document, resources: Resources) -> None:
    """Report a GPU that is left open, which is chosen by the measured memory of a model."""
    if resources.accelerator == AUTO:
        what = "is auto, but a GPU is chosen by what a model was measured to take; name one for a custom predictor"
        container.fault(f"resources.limits.{WHOLE}", what)


def check_variables(container: Document, names: Mapping[str, object]) -> None:
    """Report the variable by which KServe's images are given the files of a model."""
    if "STORAGE_URI" in names:
        container.fault(
            "env",
            "sets STORAGE_URI, but a custom predictor is given no files; put them into its image, or serve them by "
            "spec.predictor.model",
        )


def custom_json(custom: CustomPredictor | None) -> dict[str, Any]:
    """Return it as `spec.predictor` has it, defaults filled in; empty for None."""
    if custom is None:
        return {}
    container: dict[str, Any] = {
        "name": "predictor",
        **source_json(custom.image, custom.working_dir),
        "command": list(custom.command),
        "args": list(custom.args),
    }
    if not custom.working_dir:
        container["ports"] = [{"name": "http", "containerPort": custom.port}]
    if custom.ready_path:
        container["readinessProbe"] = {"httpGet": {"path": custom.ready_path}}
    return {"protocolVersion": custom.protocol.value, "containers": [container]}


def stored_custom(value: Mapping[str, Any]) -> CustomPredictor | None:
    """Return the custom predictor from the JSON of `custom_json`."""
    predictor = Document(value, "spec.predictor")
    container = container_of(predictor)
    return None if container is None else parse_custom(predictor, container)


def _check_image(image: str, *, field: str) -> str:
    check_image(image, field=field)
    try:
        found = parse_image(image)
    except InvalidInput as error:
        raise InvalidInput(f"{field}: {error.message}", field=field) from error
    if not found.digest.startswith("sha256:"):
        raise InvalidInput(
            f"{field} is {image[:200]!r}, whose content may change, and a revision never does; name it as "
            "REPOSITORY@sha256:…, which a registry shows at a push (or `docker buildx imagetools inspect IMAGE`)",
            field=field,
        )
    return image


def _protocol(predictor: Document, container: Document) -> Protocol:
    """Return the protocol of `protocolVersion`; without it that of KServe's variable PROTOCOL, else V2."""
    entries = container.raw("env", [])
    named = [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []
    said = next((each.get("value") for each in named if each.get("name") == "PROTOCOL"), None)
    by_variable = next((each for each in Protocol if each == said), None)
    if predictor.raw("protocolVersion", None) is None:
        return by_variable or Protocol.V2
    found = predictor.choice("protocolVersion", Protocol, Protocol.V2)
    if by_variable is not None and by_variable is not found and predictor.is_sound("protocolVersion"):
        predictor.fault("protocolVersion", f"is {found}, but the container's variable PROTOCOL is {by_variable}")
    return found


def _port(container: Document) -> int:
    ports = container.documents("ports") if container.raw("ports", None) is not None else []
    if not ports:
        return PORT
    if len(ports) > 1:
        container.fault("ports", f"has {len(ports)} entries; a custom predictor takes HTTP requests at one port")
    port = ports[0]
    if (name := port.text("name", default="http")) not in _NAMES:
        port.fault("name", f"is {name[:60]!r}; a custom predictor has one port http or http1, and no gRPC")
    number = port.integer("containerPort", minimum=1024, maximum=65535)
    if number in _TAKEN:
        port.fault("containerPort", f"is {number}, at which Fairlead takes the pod's requests; choose another")
    if port.text("protocol", default="TCP") != "TCP":
        port.fault("protocol", "has to be TCP")
    port.refuse_unknown()
    return number


def _ready_path(container: Document, port: int | None) -> str:
    """Return the path of its probe.

    Args:
        port: None where a program's is chosen later.
    """
    probe = container.optional("readinessProbe")
    if probe is None:
        return ""
    asked = probe.document("httpGet")
    path = asked.text("path")
    if asked.is_sound("path") and not (_PATH.fullmatch(path) and len(path) <= _LONGEST_PATH):
        asked.fault(
            "path", f"is {path[:60]!r}; expected a path of at most {_LONGEST_PATH} characters, such as /healthz"
        )
    if (asked_port := asked.raw("port", port)) not in (port, *_NAMES):
        its = "chosen by the platform" if port is None else f"{port}"
        asked.fault("port", f"is {str(asked_port)[:20]!r}, and the container's port is {its}")
    instead = "the probe asks the container's port over HTTP, every two seconds"
    asked.refuse_unknown(dict.fromkeys(("scheme", "host", "httpHeaders"), instead))
    probe.refuse_unknown(dict.fromkeys(("exec", "tcpSocket", "grpc", "periodSeconds"), instead))
    return path
