"""Every command has an answer for programs: with `--output json`, stdout is one JSON document and nothing else."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.parser.command_table import COMMANDS
from tests.fairlead_cli._support.answers import BUILD, INVITATION, REPARTITION, TRIAL, TRIED, TUNING, USER, listed

Fairlead = Callable[..., tuple[int, str, str]]
NO_ANSWER = {"up", "demo", "completion"}
"""The first two run until they are told to end, the third prints a script."""

MODEL: dict[str, Any] = {
    "name": "m",
    "compatible_with": "",
    "description": "",
    "tags": {},
    "aliases": [],
    "latest_version": 1,
}
VERSION: dict[str, Any] = {"model": "m", "number": 1, "status": "READY", "digest": "", "signature": {}, "profile": {}}
IMPORT: dict[str, Any] = {"id": 3, "status": "PENDING", "bytes_done": 0, "bytes_total": None}
APPROVALS = {"asked": None, "given": []}
ROLLOUT: dict[str, Any] = {"id": 7, "service": "default/s", "phase": "Healthy", "analysis_runs": []}
SERVICE: dict[str, Any] = {"namespace": "default", "name": "s", "revisions": [{"name": "s-00001"}], "rollout": ROLLOUT}
RECORDING: dict[str, Any] = {
    "id": 5,
    "requests": 0,
    "max_requests": 9,
    "bytes": 0,
    "share_percent": 100.0,
    "ended_at": None,
}
REPLAY: dict[str, Any] = {
    "id": 6,
    "version": 2,
    "recording": 5,
    "status": "PENDING",
    "done": 0,
    "total": 9,
    "comparison": None,
}
TUNED: dict[str, Any] = {
    **TUNING,
    "status": "DONE",
    "report": {
        "frontier": [],
        "chosen": {"requests_per_s": 1.0, "p99_ms": 1.0, "config": {}},
        "baseline": None,
        "conclusion": "It stays.",
    },
    "plot": "<svg/>",
}
PLAN: dict[str, Any] = {"outcome": "unchanged", "message": "as its file says", "before": {}, "after": {}}
POLICY: dict[str, Any] = {"name": "p", "steps": []}
CLUSTER: dict[str, Any] = {"name": "k", "kind": "kubernetes", "components": [], "services": []}
TOKEN: dict[str, Any] = {"id": 3, "name": "ci"}
KEY: dict[str, Any] = {"name": "ci", "team": "red", "services": ["default/*"]}
SECRET: dict[str, Any] = {"namespace": "default", "name": "hub", "keys": ["token"], "services": []}
ISSUER: dict[str, Any] = {"name": "corp", "issuer": "https://id.example", "audience": "models", "keys": 2}
DEMAND: dict[str, Any] = {"of": "team red", "policies": [], "approvals": 0, "signed_in": False, "digests": False}
QUOTA: dict[str, Any] = {
    "used_versions": 1,
    "max_versions": None,
    "used_bytes": 7,
    "max_bytes": None,
    "requests_per_second": None,
    "rows_per_minute": None,
}
USAGE: dict[str, Any] = {
    "month": "2026-01",
    "read_at": None,
    "currency": "",
    "lines": [
        {"team": "red", "requests": 1, "errors": 0, "bytes_in": 1, "bytes_out": 1, "model_seconds": 0.1, "cost": None}
    ],
}
BUDGET: dict[str, Any] = {
    "month": "2026-01",
    "requests": 9,
    "cost": None,
    "currency": "",
    "used_requests": 1,
    "used_cost": None,
}
KEPT: dict[str, Any] = {
    "share_percent": 100.0,
    "days": 30,
    "rows": 5,
    "max_rows": 9,
    "bytes": 700,
    "max_bytes": 9000,
    "output": "",
    "outputs": [],
}
SCORER: dict[str, Any] = {"name": "right", "kind": "accuracy", "options": {}, "unit": {"name": "percent wrong"}}
TAKEN: dict[str, Any] = {"received": 1, "changed": 0, "repeated": 0}
FEEDBACK: dict[str, Any] = {"received": 1, "joined": 1, "waiting": 0, "unmatched": 0, "answers": None, "scorers": []}
POOL: dict[str, Any] = {
    "namespace": "default",
    "name": "w",
    "cluster": "local",
    "phase": "Ready",
    "reason": "",
    "services": 3,
    "memory_budget_bytes": 1 << 30,
    "shared_with": ["vision"],
    "figures": {
        "hits": 9,
        "misses": 1,
        "hit_percent": 90.0,
        "loads": 1,
        "load_p99_ms": 20.5,
        "load_failures": {"corrupt": 1},
        "evictions": 0,
        "loaded_models": 1,
        "memory_bytes": 1 << 20,
        "memory_limit_bytes": 1 << 30,
        "waiting": 0,
    },
    "replicas": [],
    "models": [],
    "slowest": [],
    "advice": ["Raise memoryBudget."],
    "problem": "",
}
UPGRADE: dict[str, Any] = {
    "id": 1,
    "cluster": None,
    "namespace": "",
    "percent": 25,
    "at_once": 5,
    "phase": "Running",
    "message": "",
    "services": {"Waiting": 1},
    "created_at": "2026-01-01T12:00:00Z",
    "created_by": "ann",
    "ended_at": None,
}
BEHIND = {
    "namespace": "default",
    "name": "s",
    "cluster": "k",
    "revision": "s-00001",
    "template_changes": "image a -> b",
}
UPGRADED = {
    "namespace": "default",
    "name": "s",
    "wave": 1,
    "state": "Waiting",
    "changes": "image a -> b",
    "message": "",
}
HOOK: dict[str, Any] = {"id": 4, "team": None, "url": "https://a.example/", "events": ["RolloutHealthy"]}
DELIVERY: dict[str, Any] = {"id": 9, "status": "DELIVERED", "answer_status": 204, "answer": ""}
ENTRY: dict[str, Any] = {"id": 1, "actor": "ann", "before": None, "after": {"name": "m"}}
VERIFIED = {
    "broken": "",
    "complete": True,
    "position": 3,
    "checked": 3,
    "waiting": 0,
    "pruned": 0,
    "protected": False,
    "checkpoint": None,
    "public_keys": [],
}
SERVES = {"PUT /services/default/s?dry_run=true": PLAN, "PUT /services/default/s": SERVICE}
FILES = "GET /models/m/versions/1/artifact"


@dataclass(frozen=True)
class Asked:
    """A command line after the command's words, and the API's answers to what it asks."""

    line: str = ""
    answers: dict[str, Any] = field(default_factory=dict)


CALLS = {
    "login": Asked("--token flt_1", {"GET /whoami": {"user": "ann"}}),
    "whoami": Asked("", {"GET /whoami": {"user": "ann"}}),
    "models push": Asked("m.onnx --name m", {"POST /models/m/versions?filename=m.onnx": VERSION}),
    "models push-many": Asked("many", {"POST /models/m/versions?filename=m.onnx": VERSION}),
    "models imports": Asked("m", {"GET /models/m/imports": listed(IMPORT)}),
    "models stop-import": Asked("m 3", {"DELETE /models/m/imports/3": {}}),
    "models tune": Asked(
        "m --version 1 --max-latency-p99-ms 5",
        {"POST /models/m/versions/1/tunings": TUNING, "GET /models/m/versions/1/tunings/5": TUNED},
    ),
    "models build": Asked(
        "m --version 1 --precision int8",
        {
            "POST /models/m/versions/1/builds": BUILD,
            "GET /models/m/versions/1/builds/7": {**BUILD, "status": "DONE", "built": 2},
        },
    ),
    "models builds": Asked("m --version 1", {"GET /models/m/versions/1/builds": listed(BUILD)}),
    "models stop-build": Asked("m 7 --version 1", {"DELETE /models/m/versions/1/builds/7": {}}),
    "users list": Asked("", {"GET /users": listed(USER)}),
    "users show": Asked("bob", {"GET /users/bob": USER}),
    "users switch-off": Asked("bob --reason left", {"PATCH /users/bob": USER}),
    "users switch-on": Asked("bob --reason back", {"PATCH /users/bob": USER}),
    "users invite": Asked("bob", {"POST /users/bob/invitation": INVITATION}),
    "users free": Asked("bob", {"DELETE /users/bob/identity": {}}),
    "models try": Asked(
        "m --version 1 --data request.json",
        {"POST /models/m/versions/1/trials": TRIAL, "GET /models/m/versions/1/trials/8": TRIED},
    ),
    "models trials": Asked("m --version 1", {"GET /models/m/versions/1/trials": listed(TRIAL)}),
    "models stop-trial": Asked("m 8 --version 1", {"DELETE /models/m/versions/1/trials/8": {}}),
    "models tunings": Asked("m --version 1", {"GET /models/m/versions/1/tunings": listed(TUNING)}),
    "models stop-tuning": Asked("m 5 --version 1", {"DELETE /models/m/versions/1/tunings/5": {}}),
    "models pull": Asked("m 1 --to files", {"GET /models/m/versions/1": VERSION, FILES: b"onnx"}),
    "models list": Asked("", {"GET /models": listed(MODEL)}),
    "models show": Asked("m", {"GET /models/m": MODEL, "GET /models/m/versions": listed(VERSION)}),
    "models kept-rules": Asked("", {"GET /kept-rules": listed({"name": "m"})}),
    "models remove-rules": Asked("m", {"DELETE /models/m/kept-rules": {}}),
    "models describe": Asked("m words", {"PATCH /models/m": MODEL}),
    "models tag": Asked("m a=b", {"PATCH /models/m": MODEL}),
    "models compatible": Asked("m @champion", {"PATCH /models/m": MODEL}),
    "models delete": Asked("m", {"DELETE /models/m": {}}),
    "versions show": Asked("m 1", {"GET /models/m/versions/1": VERSION}),
    "versions recheck": Asked("m 1", {"POST /models/m/versions/1/recheck": VERSION}),
    "storage show": Asked("", {"GET /storage": {"store": None, "models": [], "unnamed": []}}),
    "storage collect": Asked("", {"POST /storage/collect": {"deleted": [], "size_bytes": 0}}),
    "versions delete": Asked("m 1", {"DELETE /models/m/versions/1": {}}),
    "alias set": Asked("m champion 1", {"PUT /models/m/aliases/champion": {}}),
    "alias delete": Asked("m champion", {"DELETE /models/m/aliases/champion": {}}),
    "alias protect": Asked("m champion", {"PUT /models/m/aliases/champion/protection": MODEL}),
    "alias unprotect": Asked("m champion", {"DELETE /models/m/aliases/champion/protection": {}}),
    "models require-approval": Asked("m yes", {"PUT /models/m/approval": {**MODEL, "requires_approval": True}}),
    "versions approve": Asked("m 1", {"PUT /models/m/versions/1/approval": VERSION}),
    "versions decline": Asked("m 1 --comment no", {"PUT /models/m/versions/1/approval": VERSION}),
    "services apply": Asked("-f s.yaml", SERVES),
    "services list": Asked("", {"GET /services": listed(SERVICE)}),
    "services show": Asked("s", {"GET /services/default/s": SERVICE}),
    "services logs": Asked("s", {"GET /services/default/s": SERVICE}),
    "services stop": Asked("s", {"POST /services/default/s/stop": SERVICE}),
    "services resume": Asked("s", {"POST /services/default/s/resume": SERVICE}),
    "services restart": Asked("s", {"POST /services/default/s/restart": SERVICE}),
    "services replay": Asked("s --version 2", {"POST /services/default/s/replays": REPLAY}),
    "services replays": Asked("s", {"GET /services/default/s/replays": listed(REPLAY)}),
    "services delete": Asked("s", {"DELETE /services/default/s": {}}),
    "recordings start": Asked("s --consent agreed", {"POST /services/default/s/recordings": RECORDING}),
    "recordings list": Asked("s", {"GET /services/default/s/recordings": listed(RECORDING)}),
    "recordings show": Asked("s 5", {"GET /services/default/s/recordings/5": RECORDING}),
    "recordings stop": Asked("s 5", {"POST /services/default/s/recordings/5/stop": RECORDING}),
    "recordings delete": Asked("s 5", {"DELETE /services/default/s/recordings/5": {}}),
    "feedback keep": Asked("s --share 50", {"PUT /services/default/s/feedback/answers": KEPT}),
    "feedback stop": Asked("s", {"DELETE /services/default/s/feedback/answers": {}}),
    "feedback score": Asked("s right --kind accuracy", {"PUT /services/default/s/feedback/scorers/right": SCORER}),
    "feedback send": Asked("s a=3", {"POST /services/default/s/feedback": TAKEN}),
    "feedback file": Asked("s labels.csv", {"POST /services/default/s/feedback": TAKEN}),
    "feedback show": Asked("s", {"GET /services/default/s/feedback": FEEDBACK}),
    "clusters join": Asked("k -f k.yaml", {}),
    "clusters apply": Asked("-f k.yaml", {"PUT /clusters/k?dry_run=true": PLAN, "PUT /clusters/k": CLUSTER}),
    "clusters list": Asked("", {"GET /clusters": listed(CLUSTER)}),
    "clusters show": Asked("k", {"GET /clusters/k": CLUSTER}),
    "clusters check": Asked("k", {"GET /clusters/k/check": {"ok": True, "findings": []}}),
    "clusters gpus": Asked("k", {"GET /clusters/k/gpus": {"unknown": "", "nodes": []}}),
    "clusters repartition": Asked("k --for 1g.10gb", {"POST /clusters/k/repartitions": REPARTITION}),
    "pools list": Asked("", {"GET /model-pools": listed(POOL)}),
    "pools show": Asked("w", {"GET /model-pools/default/w": POOL}),
    "pools services": Asked("w", {"GET /model-pools/default/w/services": listed(SERVICE)}),
    "fleet behind": Asked("", {"GET /fleet/services": listed(BEHIND)}),
    "fleet upgrade": Asked("--percent 20", {"POST /fleet/upgrades": UPGRADE}),
    "fleet list": Asked("", {"GET /fleet/upgrades": listed(UPGRADE)}),
    "fleet show": Asked("1", {"GET /fleet/upgrades/1": UPGRADE, "GET /fleet/upgrades/1/services": listed(UPGRADED)}),
    "fleet pause": Asked("1", {"POST /fleet/upgrades/1/pause": UPGRADE}),
    "fleet resume": Asked("1", {"POST /fleet/upgrades/1/resume": UPGRADE}),
    "fleet cancel": Asked("1", {"POST /fleet/upgrades/1/cancel": UPGRADE}),
    "repartitions list": Asked("k", {"GET /clusters/k/repartitions": listed(REPARTITION)}),
    "repartitions show": Asked("k 5", {"GET /clusters/k/repartitions/5": REPARTITION}),
    "repartitions approve": Asked("k 5", {"POST /clusters/k/repartitions/5/approve": REPARTITION}),
    "repartitions decline": Asked("k 5", {"POST /clusters/k/repartitions/5/decline": REPARTITION}),
    "repartitions abort": Asked("k 5", {"POST /clusters/k/repartitions/5/abort": REPARTITION}),
    "clusters delete": Asked("k", {"DELETE /clusters/k": {}}),
    "policies apply": Asked("-f p.yaml", {"PUT /policies/p?dry_run=true": PLAN, "PUT /policies/p": POLICY}),
    "policies list": Asked("", {"GET /policies": listed(POLICY)}),
    "policies show": Asked("p", {"GET /policies/p": POLICY}),
    "policies delete": Asked("p", {"DELETE /policies/p": {}}),
    "rollouts start": Asked("s --version 2", {"POST /services/default/s/rollouts": ROLLOUT}),
    "rollouts status": Asked("7", {"GET /rollouts/7": ROLLOUT}),
    "rollouts comparison": Asked("7", {"GET /rollouts/7": ROLLOUT, "GET /rollouts/7/comparison": {"steps": []}}),
    "rollouts approve": Asked("7", {"GET /rollouts/7": ROLLOUT, "POST /rollouts/7/approvals": APPROVALS}),
    "rollouts withdraw": Asked(
        "7", {"GET /rollouts/7": ROLLOUT, "DELETE /rollouts/7/approvals": {}, "GET /rollouts/7/approvals": APPROVALS}
    ),
    "rollouts reject": Asked("7 --comment no", {"GET /rollouts/7": ROLLOUT, "POST /rollouts/7/reject": ROLLOUT}),
    "rollouts promote": Asked("7", {"GET /rollouts/7": ROLLOUT, "POST /rollouts/7/promote": ROLLOUT}),
    "rollouts abort": Asked("7", {"GET /rollouts/7": ROLLOUT, "POST /rollouts/7/abort": ROLLOUT}),
    "rollouts retry": Asked("7", {"GET /rollouts/7": ROLLOUT, "POST /rollouts/7/retry": ROLLOUT}),
    "rollouts undo": Asked("s", {"POST /services/default/s/rollback": ROLLOUT}),
    "keys create": Asked("ci --service default/*", {"POST /keys": KEY}),
    "keys list": Asked("", {"GET /keys": listed(KEY)}),
    "keys show": Asked("ci", {"GET /keys/ci": KEY}),
    "keys limit": Asked("ci 20", {"PATCH /keys/ci": KEY}),
    "keys budget": Asked("ci", {"GET /keys/ci/budget": BUDGET}),
    "keys rotate": Asked("ci", {"POST /keys/ci/rotate": KEY}),
    "keys revoke": Asked("ci", {"DELETE /keys/ci": {}}),
    "issuers create": Asked("corp --issuer https://id.example --audience models", {"POST /issuers": ISSUER}),
    "issuers list": Asked("", {"GET /issuers": listed(ISSUER)}),
    "issuers show": Asked("corp", {"GET /issuers/corp": ISSUER}),
    "issuers delete": Asked("corp", {"DELETE /issuers/corp": {}}),
    "secrets create": Asked(f"hub --from-file token={__file__}", {"POST /secrets": SECRET}),
    "secrets set": Asked("hub --remove old", {"PATCH /secrets/default/hub": SECRET}),
    "secrets list": Asked("", {"GET /secrets": listed(SECRET)}),
    "secrets delete": Asked("hub", {"DELETE /secrets/default/hub": {}}),
    "usage": Asked("", {"GET /usage": USAGE}),
    "services budget": Asked("s", {"GET /services/default/s/budget": BUDGET}),
    "teams budget": Asked("red", {"GET /teams/red/budget": BUDGET}),
    "tokens create": Asked("--name ci", {"POST /tokens": TOKEN}),
    "tokens list": Asked("", {"GET /tokens": listed(TOKEN)}),
    "tokens show": Asked("3", {"GET /tokens/3": TOKEN}),
    "tokens revoke": Asked("3", {"DELETE /tokens/3": {}}),
    "teams demand": Asked("team red", {"GET /teams/red/demand": DEMAND}),
    "teams set-demand": Asked("team red --approvals 1", {"PUT /teams/red/demand": DEMAND}),
    "teams quota": Asked("red", {"GET /teams/red/quota": QUOTA}),
    "teams list": Asked("", {"GET /teams": listed({"name": "red"})}),
    "teams show": Asked(
        "red",
        {
            "GET /teams/red": {"name": "red"},
            "GET /teams/red/members": listed({"user": "ann"}),
            "GET /teams/red/owned": listed(),
        },
    ),
    "teams create": Asked("red", {"POST /teams": {"name": "red"}}),
    "teams delete": Asked("red", {"DELETE /teams/red": {}}),
    "teams give": Asked("red model m", {"PUT /teams/red/models/m": {"kind": "model", "name": "m"}}),
    "teams take": Asked("red namespace n", {"DELETE /teams/red/namespaces/n": {}}),
    "members list": Asked("red", {"GET /teams/red/members": listed({"user": "ann"})}),
    "members add": Asked("red ann --role viewer", {"PUT /teams/red/members/ann": {"user": "ann"}}),
    "members remove": Asked("red ann", {"DELETE /teams/red/members/ann": {}}),
    "audit list": Asked("--object models/m", {"GET /audit?target=models%2Fm&limit=50": listed(ENTRY)}),
    "audit verify": Asked("", {"GET /audit/verification": VERIFIED}),
    "audit export": Asked("log.jsonl", {"GET /audit/export": {}}),
    "webhooks list": Asked("", {"GET /webhooks": listed(HOOK)}),
    "webhooks show": Asked("4", {"GET /webhooks/4": HOOK, "GET /webhooks/4/deliveries?limit=10": listed(DELIVERY)}),
    "webhooks create": Asked("https://a.example/ --event RolloutHealthy", {"POST /webhooks": {**HOOK, "secret": "w"}}),
    "webhooks edit": Asked("4 --disable", {"PATCH /webhooks/4": HOOK}),
    "webhooks delete": Asked("4", {"DELETE /webhooks/4": {}}),
    "webhooks renew-secret": Asked("4", {"POST /webhooks/4/secret": {**HOOK, "secret": "w"}}),
    "webhooks test": Asked("4", {"POST /webhooks/4/test": DELIVERY, "GET /webhooks/4/deliveries/9": DELIVERY}),
    "webhooks deliveries": Asked("4", {"GET /webhooks/4/deliveries?limit=50": listed(DELIVERY)}),
    "webhooks redeliver": Asked(
        "4 9", {"POST /webhooks/4/deliveries/9/redeliver": DELIVERY, "GET /webhooks/4/deliveries/9": DELIVERY}
    ),
    "events": Asked("s", {"GET /services/default/s/events?limit=50": listed({"seq": 1})}),
}
LOCAL = {"backup", "restore", "rotate-secret-key"}
"""These need a home; `commands/test_backup.py` and `test_secret_key.py` ask them."""


def test_every_command_that_answers_is_asked() -> None:
    answering = {command.words for command in COMMANDS if command.answers}
    assert {command.words for command in COMMANDS} - answering == NO_ANSWER
    assert answering == {*CALLS, *LOCAL}


@pytest.mark.parametrize("words", CALLS)
def test_the_answer_for_programs_is_one_json_document(words: str, fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "m.onnx").write_bytes(b"onnx")
    (at_home / "many").mkdir()
    (at_home / "many" / "m.onnx").write_bytes(b"onnx")
    (at_home / "request.json").write_text("{}")
    (at_home / "s.yaml").write_text("metadata: {name: s}")
    (at_home / "labels.csv").write_text("request_id,value\na,3\n")
    (at_home / "p.yaml").write_text("name: p")
    (at_home / "k.yaml").write_text("name: k")
    (at_home / ".fairlead" / "logs").mkdir(parents=True)
    of_file = hashlib.sha256(b"onnx").hexdigest()
    VERSION["digest"] = "sha256:" + hashlib.sha256(f"model.onnx\0{of_file}\n".encode()).hexdigest()
    asked = CALLS[words]
    for request, document in asked.answers.items():
        api.on(request, document, status=204 if request.startswith("DELETE") else 200)
    api.filenames[FILES] = "model.onnx"

    code, said, complained = fairlead(*words.split(), *asked.line.split(), "--output", "json")

    assert code == 0, complained
    json.loads(said)
    assert {seen.method + " " + seen.path for seen in api.seen} == {*asked.answers}
