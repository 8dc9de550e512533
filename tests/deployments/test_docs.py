"""docs/reference/rollouts.md says what the code does."""

import re
from pathlib import Path

from django.conf import settings

from deployments.history import Kind
from deployments.phases import Code
from deployments.policy import Gate, Policy, Step, policy_json

PAGE = (Path(settings.ROOT) / "docs" / "reference" / "rollouts.md").read_text()


def test_every_reason_and_every_event_has_its_line() -> None:
    documented = set(re.findall(r"`([A-Z]\w+)`", PAGE))
    assert {code.value for code in Code} | {kind.value for kind in Kind} <= documented


def test_the_defaults_of_the_policy_file_are_the_ones_in_the_code() -> None:
    policy = policy_json(Policy("p", (Step(10, gate=Gate()),)))
    step = policy["steps"][0]  # type: ignore[index]
    said = {
        **{
            name: value
            for name, value in policy.items()
            if name in ("onInconclusive", "scaleDownDelay", "progressDeadline")
        },
        "steps[].hold": step["hold"],
        "steps[].pause": step["pause"],
        **step["analysis"],
    }
    for name, value in said.items():
        shown = f"{value:g}" if isinstance(value, float) else str(value).lower()
        assert f"| `{name}` | `{shown}` |" in PAGE, name


def test_the_machine_is_drawn_as_in_the_code() -> None:
    drawing = (Path(settings.ROOT) / "platform" / "deployments" / "rollout" / "__init__.py").read_text()
    machine = drawing[drawing.index("            start, or retry") : drawing.index("\n\nDegraded and Aborted")]
    assert machine in PAGE
