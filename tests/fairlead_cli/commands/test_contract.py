"""What a rollout changes for clients: shown, and let pass by a flag that names its reason."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Fairlead = Callable[..., tuple[int, str, str]]
START = "POST /services/default/digits/rollouts"
BREAK = "output 'label' is not given any more"
ACCEPTED = {
    "breaks": [BREAK],
    "notes": ["output 'scores' is new"],
    "unknown": "",
    "accepted_by": "ann",
    "accepted_because": "nobody reads labels",
}
REFUSAL = {"error": {"code": "contract_broken", "message": f"it would break clients: {BREAK}", "details": [BREAK]}}
PLAN = {"outcome": "changed", "message": "new revision digits-00002", "before": {}, "after": {}, "contract": ACCEPTED}
FILE = {"kind": "InferenceService", "metadata": {"name": "digits"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "service.yaml"
    path.write_text(yaml.safe_dump(FILE))
    return path


def test_a_refusal_names_the_flag(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on(START, REFUSAL, status=409)
    api.on("PUT /services/default/digits?dry_run=true", REFUSAL, status=409)

    for command in (("rollouts", "start", "digits", "--version", "2"), ("services", "apply", "-f", str(file))):
        code, _, complaint = fairlead(*command)
        assert code == 1
        assert f"{BREAK}; the flag for that is --force-contract REASON" in complaint


def test_a_dry_run_of_a_rollout_tells_what_changes_for_clients(fairlead: Fairlead, api: Any) -> None:
    api.on(f"{START}?dry_run=true", PLAN)

    command = ("rollouts", "start", "digits", "--version", "2", "--force-contract", "nobody reads labels", "--dry-run")
    code, said, _ = fairlead(*command)

    assert (code, said.splitlines()) == (
        0,
        [
            "new revision digits-00002",
            f"breaks clients: {BREAK}",
            "accepted by ann: nobody reads labels",
            "changes for clients: output 'scores' is new",
        ],
    )
    assert api.seen[0].document == {
        "version": "2",
        "accept_contract_changes": True,
        "reason": "nobody reads labels",
    }


def test_a_file_is_applied_with_the_reason_in_its_address(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on("PUT /services/default/digits?dry_run=true&accept_contract_changes=true&reason=a+%26+b", PLAN)

    code, said, _ = fairlead("services", "apply", "-f", str(file), "--force-contract", "a & b", "--dry-run")

    assert (code, f"  breaks clients: {BREAK}" in said.splitlines()) == (0, True)
