"""Whether a command line of the runtime lets models in Python run."""

import pytest

from integrations.clusters.flags import allows_python, python_flags

RUNTIME = ["python", "-I", "-m", "serving_runtime"]


@pytest.mark.parametrize(
    ("flags", "allowed"),
    [
        pytest.param([], False, id="nothing said"),
        pytest.param(python_flags(allowed=True), True, id="as the platform says it"),
        pytest.param(python_flags(allowed=False), False, id="as it says no"),
        pytest.param(["--allow-python-models", "1"], True, id="in two words"),
        pytest.param(["--allow-python-models=false"], False, id="no"),
        pytest.param(["--allow-python-models=true", "--allow-python-models=off"], False, id="the last one counts"),
        pytest.param(["--model-repository=/allow-python-models=true"], False, id="a folder of that name"),
    ],
)
def test_a_command_line_is_read_as_the_runtime_reads_it(flags: list[str], allowed: bool) -> None:
    assert allows_python([*RUNTIME, *flags]) is allowed
