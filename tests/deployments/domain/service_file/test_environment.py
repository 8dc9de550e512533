"""Variables of a service file against what processes get of them."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import check_env, is_code, left_out, parse_service
from deployments.models import Revision
from tests.deployments._support.platform import Platform
from tests.deployments._support.service_files import FILE

NAME = "spec.predictor.model.env"
TRANSFORMER, EXPLAINER = "spec.transformer.containers[0].env", "spec.explainer.containers[0].env"


def file(env: str = "TZ", **companions: str) -> dict[str, Any]:
    model = FILE["spec"]["predictor"]["model"] | {"env": [{"name": env, "value": "1"}]}
    spec: dict[str, Any] = {"predictor": {"model": model}}
    for kind, name in companions.items():
        spec[kind] = {"containers": [{"image": "example.org/t:1", "env": [{"name": name, "value": "1"}]}]}
    return FILE | {"spec": spec}


@pytest.mark.parametrize(
    ("said", "of_code", "field"),
    [
        pytest.param(file("OWN"), False, NAME, id="an own name of a model without code"),
        pytest.param(file("LD_PRELOAD"), True, NAME, id="a library of a model in Python"),
        pytest.param(file(transformer="PYTHONPATH"), False, TRANSFORMER, id="Python's path of a transformer"),
        pytest.param(file(explainer="LD_PRELOAD"), False, EXPLAINER, id="a library of an explainer"),
    ],
)
def test_a_file_is_refused_by_the_field(said: dict[str, Any], of_code: bool, field: str) -> None:
    spec = parse_service(said)  # one that is stored is still read
    with pytest.raises(InvalidInput, match=rf"^{field.replace('[', '.').replace(']', '.')} sets ") as refused:
        check_env(spec, is_code=of_code)
    assert refused.value.field == field
    assert left_out(spec.env, spec.companions, is_code=of_code).endswith(str(refused.value).partition(": ")[2])


@pytest.mark.parametrize(
    ("said", "of_code"),
    [
        pytest.param(file("MODEL_X"), False, id="a name of an own backend"),
        pytest.param(file("OWN"), True, id="an own name of a model in Python"),
        pytest.param(file(transformer="OWN"), False, id="an own name of a transformer"),
    ],
)
def test_a_file_is_taken(said: dict[str, Any], of_code: bool) -> None:
    spec = parse_service(said)
    check_env(spec, is_code=of_code)
    assert left_out(spec.env, spec.companions, is_code=of_code) == ""


def test_what_is_not_known_is_no_code() -> None:
    assert [name for name in ("python", "ensemble", "", "onnxruntime_onnx", "own") if is_code(name)] == [
        "python",
        "ensemble",
    ]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_model_in_python_has_own_names_where_its_cluster_runs_such(
    platform: Platform, settings: Any, allowed: bool
) -> None:
    settings.ALLOW_PYTHON_MODELS = allowed
    version = platform.version(1)
    version.platform = "python"
    version.save(update_fields=["platform"])
    document = {"modelFormat": {"name": "python"}, "storageUri": "models:/digits/1"}
    document |= {"env": [{"name": "OWN", "value": "1"}]}  # type: ignore[dict-item]
    if not allowed:
        with pytest.raises(InvalidInput, match=f"{NAME} sets OWN"):
            platform.apply(policy=None, model=document)
        return
    platform.apply(policy=None, model=document)
    platform.turn()
    (revision,) = platform.cluster.applied[-1].revisions
    assert (Revision.objects.get().env, revision.env, revision.is_code) == ({"OWN": "1"}, {"OWN": "1"}, True)
