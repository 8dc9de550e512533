"""What of a loaded model a reload keeps, as a table."""

from pathlib import Path

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.engine.catalog.repository import LocalRoot, ModelFolder
from serving_runtime.engine.loading.load_model import LoadPlan
from serving_runtime.engine.loading.reuse import Reuse, reusable

ROOT, OTHER = LocalRoot(Path("/models")), LocalRoot(Path("/models"))
MARKS = {"config.pbtxt": "9-1", "1/": "", "1/model.onnx": "5-1", "2/": "", "2/model.onnx": "5-1", "labels.txt": "3-1"}
CONFIG = "max_batch_size: 4 instance_group { count: 2 }"


def plan(
    config: str = CONFIG,
    versions: tuple[int, ...] = (1, 2),
    root: LocalRoot | None = ROOT,
    marks: dict[str, str] | None = None,
) -> LoadPlan:
    folder = ModelFolder("m", Path("/models/m"), (1, 2), {**MARKS, **(marks or {})}, root=root)
    return LoadPlan(folder, text_format.Parse(config, proto.ModelConfig()), versions, {})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, plan(), Reuse(), id="nothing is loaded"),
        pytest.param(plan(), plan(), Reuse(kept=frozenset({1, 2})), id="nothing has changed"),
        pytest.param(
            plan(),
            plan(marks={"config.pbtxt": "9-2"}),
            Reuse(kept=frozenset({1, 2})),
            id="a touched config",
        ),
        pytest.param(plan(), plan(marks={"2/model.onnx": "5-2"}), Reuse(kept=frozenset({1})), id="one version's file"),
        pytest.param(plan(versions=(1,)), plan(), Reuse(kept=frozenset({1})), id="a version more"),
        pytest.param(plan(), plan(versions=(2,)), Reuse(kept=frozenset({2})), id="a version less"),
        pytest.param(plan(), plan(marks={"labels.txt": "3-2"}), Reuse(), id="a file that all versions share"),
        pytest.param(plan(), plan("max_batch_size: 5 instance_group { count: 2 }"), Reuse(), id="another config"),
        pytest.param(
            plan(),
            plan("max_batch_size: 4 instance_group { count: 3 }"),
            Reuse(reconfigured=frozenset({1, 2})),
            id="another number of instances",
        ),
        pytest.param(
            plan(),
            plan(f"{CONFIG} version_policy {{ all {{ }} }}"),
            Reuse(reconfigured=frozenset({1, 2})),
            id="another version policy",
        ),
        pytest.param(
            plan(),
            plan("max_batch_size: 4 instance_group { count: 3 }", marks={"1/model.onnx": "5-2"}),
            Reuse(reconfigured=frozenset({2})),
            id="another number, and one version's file",
        ),
        pytest.param(plan(), plan("max_batch_size: 4"), Reuse(), id="a group less"),
        pytest.param(plan(), plan(root=OTHER), Reuse(), id="another repository"),
        pytest.param(plan(root=None), plan(root=None), Reuse(), id="files of a request's own"),
    ],
)
def test_a_reload_keeps_what_has_not_changed(old: LoadPlan | None, new: LoadPlan, expected: Reuse) -> None:
    assert reusable(old, new) == expected
