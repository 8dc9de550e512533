"""docs/reference/rollouts.md says what the code does."""

import re
from pathlib import Path

import yaml
from django.conf import settings

from deployments.domain.phases import Code
from deployments.domain.policy import Gate, Metric, Policy, SlowLimit, Step, parse_policy, policy_json
from deployments.domain.policy.metrics import metrics_json
from deployments.domain.policy.promql import PLACEHOLDERS
from events.domain.kinds import Kind

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
        "alpha": policy["alpha"],
        **{name: value for name, value in step["analysis"].items() if name != "detect"},
        **{f"detect.{name}": value for name, value in step["analysis"]["detect"].items()},
    }
    for name, value in said.items():
        shown = f"{value:g}" if isinstance(value, float) else str(value).lower()
        assert f"| `{name}` | `{shown}` |" in PAGE, name


def test_the_machine_is_drawn_as_in_the_code() -> None:
    drawing = (Path(settings.ROOT) / "platform" / "deployments" / "domain" / "rollout" / "__init__.py").read_text()
    machine = drawing[drawing.index("            start, or retry") : drawing.index("\n\nDegraded and Aborted")]
    assert machine in PAGE


def test_every_field_and_placeholder_of_a_metric_is_documented() -> None:
    page = (Path(settings.ROOT) / "docs" / "reference" / "measurements.md").read_text()
    compared = Metric("n", "q", maximum=1.0, minimum=0.0), Metric("n", "q", max_increase_percent=1.0)
    fields = {name for written in metrics_json(compared) for name in written} | {"maxDecreasePercent"}
    rows = "".join(line for line in page.splitlines() if line.startswith("| `"))
    assert [name for name in fields if f"`{name}`" not in rows] == []
    assert [name for name in PLACEHOLDERS if f"`{{{{{name}}}}}`" not in rows] == []
    assert f"`{Metric('n', 'q').min_looks}`" in rows


def test_the_example_of_the_measurements_page_is_a_policy() -> None:
    page = (Path(settings.ROOT) / "docs" / "reference" / "measurements.md").read_text()
    example = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    (step,) = parse_policy({"name": "measured", **example}).steps
    assert step.gate is not None
    assert [metric.name for metric in step.gate.metrics] == ["queue-time", "abandoned-baskets"]
    assert (step.gate.min_throughput_percent, step.gate.max_slower_than) == (80.0, SlowLimit(200.0, 1.0))
