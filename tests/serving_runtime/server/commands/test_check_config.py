"""`check-config` as the control plane calls it."""

import json
import subprocess
import sys

import pytest


def checked(text: bytes) -> tuple[int, dict[str, str]]:
    command = [sys.executable, "-m", "serving_runtime", "check-config", "--json"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    assert done.stderr == b""
    return done.returncode, json.loads(done.stdout)


def test_fields_that_can_be_set_are_exit_0() -> None:
    assert checked(b"max_batch_size: 8") == (0, {"schema": "fairlead.check-config/v1"})


@pytest.mark.parametrize(
    ("text", "field", "error"),
    [
        pytest.param(
            b"max_batch: 8", "max_batch", 'message type "ModelConfig" has no field named "max_batch"', id="field"
        ),
        pytest.param(b"\xff", "", "the configuration is not UTF-8", id="no text"),
        pytest.param(b"#" * (4 << 20) + b"#", "", "the configuration is larger than 4194304 bytes", id="too large"),
    ],
)
def test_a_mistake_is_its_field_one_sentence_and_exit_2(text: bytes, field: str, error: str) -> None:
    code, answer = checked(text)
    assert (code, answer["field"]) == (2, field)
    assert answer["error"].startswith(error)


def test_nothing_is_imported_that_runs_models() -> None:
    code = (
        "import sys; from serving_runtime.__main__ import main; main(['check-config'])\n"
        "print(sorted({'numpy', 'onnxruntime', 'uvloop'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True, timeout=60, check=True)
    assert done.stderr.strip() == b"[]"
