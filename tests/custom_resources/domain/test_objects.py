"""Objects, and the service files that they are."""

from typing import Any

from custom_resources.domain.objects import Object, digest, service_file, spec_of_file
from deployments.domain.service_file import parse_service

SPEC: dict[str, Any] = {"predictor": {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}}}


def item(**metadata: Any) -> dict[str, Any]:
    named = {"name": "digits", "namespace": "vision", "uid": "1", "resourceVersion": "7", "generation": 2}
    return {"metadata": {**named, **metadata}, "spec": SPEC}


def test_an_object_is_the_file_of_a_service_on_its_own_cluster() -> None:
    found = Object.of(item(annotations={"serving.kserve.io/stop": "true", "team": "vision"}))
    file = service_file(found, "production")
    spec = parse_service(file)
    assert (spec.namespace, spec.name, spec.cluster, spec.stopped) == ("vision", "digits", "production", True)
    assert spec_of_file(file) == SPEC
    assert not parse_service(service_file(Object.of(item()), "production")).stopped


def test_what_an_object_says_has_a_digest_which_the_cluster_does_not_change() -> None:
    def of(**metadata: Any) -> str:
        found = Object.of(item(**metadata))
        return digest(found, service_file(found, "production"))

    assert of() == of(resourceVersion="9", generation=3, finalizers=["fairlead.dev/drain"], annotations={"a": "b"})
    others = [of(uid="2"), of(annotations={"fairlead.dev/changes": "adopt"}), of(namespace="other")]
    assert len({of(), *others}) == 4
