"""Schemas of the kinds: closed, and with the fields of the files' parsers."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import InvalidInput
from deployments.domain.policy import parse_policy
from deployments.domain.service_file import parse_service
from integrations.clusters.kubernetes import custom_resources
from tests.custom_resources._support.specs import COMPARISON, POLICIES, SERVICES

UNKNOWN = "zzz"
ACCEPTED: dict[str, set[str]] = {
    "InferenceService": {"access", "predictor.model.config", "patches[].merge", "patches[].json6902[].value"},
    "RolloutPolicy": {"steps[].pause"},
}
"""What no structural schema can say: a text or an object, any value, and fields that others define."""


FURTHER = {"RolloutPolicy": [{**POLICIES[1], "analysis": {"comparison": COMPARISON}}]}
"""Files with fields that the parser knows, and refuses for what else they say."""


def service(spec: Mapping[str, Any]) -> object:
    file = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "digits"}}
    return parse_service({**file, "spec": spec})


def policy(spec: Mapping[str, Any]) -> object:
    return parse_policy(spec, name="careful")


def schema_of(kind: str) -> dict[str, Any]:
    """Return the schema of a kind's spec."""
    for each in yaml.safe_load_all(Path(custom_resources.__file__).with_name("crds.yaml").read_text()):
        if each["kind"] == "CustomResourceDefinition" and each["spec"]["names"]["kind"] == kind:
            schema = each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            return dict(schema)
    raise AssertionError(kind)


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield each object that a schema describes, with the names of its fields."""
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from fields(values, f"{path}.*")
    if "properties" in schema:
        yield path, set(schema["properties"])
        for name, each in schema["properties"].items():
            yield from fields(each, f"{path}.{name}".removeprefix("."))


def open_places(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield where a schema takes anything."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield path
    for name, each in schema.get("properties", {}).items():
        yield from open_places(each, f"{path}.{name}".removeprefix("."))
    for name, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(name), dict):
            yield from open_places(schema[name], path + suffix)


def objects_in(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to each object in a file."""
    if isinstance(value, dict):
        yield steps
    if isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from objects_in(each, (*steps, name))


def known_in(parse: Callable[[Mapping[str, Any]], object], spec: Mapping[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """Yield each object in a file, with the fields that its parser knows: it names them when it refuses another."""
    for steps in objects_in(spec):
        changed = deepcopy(dict(spec))
        place: Any = changed
        for step in steps:
            place = place[step]
        place[UNKNOWN] = 1
        try:
            parse(changed)
        except InvalidInput as error:
            said = "\n".join((error.message, *error.further))
            found = re.search(rf"\b{UNKNOWN} is not a field .*?it knows ([\w, ]+?)(; did you mean|\n|$)", said)
            if found is not None:
                path = "".join("[]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
                yield path, set(found[1].split(", "))


@pytest.mark.parametrize(
    ("kind", "parse", "specs"),
    [("InferenceService", service, SERVICES), ("RolloutPolicy", policy, POLICIES)],
)
def test_a_schema_has_the_fields_that_the_parser_takes(
    kind: str, parse: Callable[[Mapping[str, Any]], object], specs: tuple[dict[str, Any], ...]
) -> None:
    taken: dict[str, set[str]] = defaultdict(set)
    for spec in specs:
        parse(spec)
    for spec in (*specs, *FURTHER.get(kind, ())):
        for path, names in known_in(parse, spec):
            taken[re.sub(r"tolerances\.\w+", "tolerances.*", path)] |= names
    schema = schema_of(kind)
    assert set(open_places(schema)) == ACCEPTED[kind]
    described = dict(fields(schema))
    of_open = {path for path in taken if any(path.startswith(each) for each in ACCEPTED[kind])}
    of_maps = {f"predictor.{each}.resources.limits" for each in ("model", "containers[]", "modelPool")}
    assert {path: names for path, names in taken.items() if path not in of_open | of_maps} == described
