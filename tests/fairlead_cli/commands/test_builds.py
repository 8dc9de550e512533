"""`fairlead models build`, `builds` and `stop-build`."""

from collections.abc import Callable
from typing import Any

from tests.fairlead_cli._support.answers import BUILD

Fairlead = Callable[..., tuple[int, str, str]]
WHERE = "/models/m/versions/1/builds"
ASKED = ("models", "build", "m", "--version", "1")


def test_what_is_asked_for_is_sent(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", BUILD, status=202)
    plan = ("--target", "tensorrt", "--precision", "int8", "--profile", "x:1:2:3", "--accelerator", "nvidia.com/gpu")
    assert fairlead(*ASKED, *plan, "--product", "NVIDIA-A100", "--no-wait")[0] == 0
    assert fairlead(*ASKED, "--service", "s", "--no-wait")[0] == 0
    assert [each.document for each in api.seen] == [
        {
            "target": "tensorrt",
            "precision": "int8",
            "profiles": ["x:1:2:3"],
            "accelerator": "nvidia.com/gpu",
            "products": ["NVIDIA-A100"],
        },
        {"service": "default/s"},
    ]


def test_the_version_that_it_became_is_told_and_what_it_was_at(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", {**BUILD, "progress": {}}, status=202)
    api.on(f"GET {WHERE}/7", {**BUILD, "status": "DONE", "progress": {"stage": "building the plan"}, "built": 4})
    code, said, err = fairlead(*ASKED)
    assert code == 0
    assert "building the plan" in err
    assert "4" in said


def test_an_end_without_a_version_is_told_and_3(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", BUILD, status=202)
    api.on(f"GET {WHERE}/7", {**BUILD, "status": "FAILED", "reason": "this process has no GPU"})
    code, _, err = fairlead(*ASKED)
    assert code == 3
    assert "m version 1 was not built: this process has no GPU" in err
