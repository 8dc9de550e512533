"""`fairlead demo`: start all processes, run the scenario, report, stay up or (with --once) exit with a code."""

import argparse
import json
import math
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from fairlead_cli.client import Client, Json
from fairlead_cli.config import Access
from fairlead_cli.context import Call
from fairlead_cli.demo import family, report
from fairlead_cli.demo.evaluation import JOINED
from fairlead_cli.demo.labels import read_counts
from fairlead_cli.demo.requests import RequestLog
from fairlead_cli.demo.screen import Screen
from fairlead_cli.demo.story import MODEL, NAMESPACE, SERVICE, Story
from fairlead_cli.errors import CliError, EndedBadly
from fairlead_cli.output.waiting import poll_until
from fairlead_cli.up.command import add_place_arguments
from fairlead_cli.up.home import Home, write_atomic
from fairlead_cli.up.installation import require_installed

_FIRST_ANSWERS, _FIRST_ANSWERS_S = 30, 30.0
_FIRST_LABELS = 100
# Requests continue for so long after the rollback, to show any that the bad version still answers.
_AFTER_S = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the demo's own options to those of `fairlead up`."""
    add_place_arguments(parser)
    parser.add_argument("--once", action="store_true", help="ends after the rollouts; exit 0 only if all checks held")
    parser.add_argument("--rate", type=_positive, default=150.0, metavar="N", help="requests per second (150)")
    parser.add_argument("--hold", type=int, default=6, metavar="SECONDS", help="minimum time at each step (6)")


def run(call: Call) -> None:
    """Demonstrates everything: serves a model, rolls out the next by canary, rolls back bad ones automatically."""
    options = call.options
    require_installed(demo=True)
    # These end the demo as Ctrl-C does: through the `finally` of everything that was started.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    screen, home = Screen(Console()), Home(options.home.resolve())
    arguments = ["--home", str(home.path), "--address", str(options.address)]
    arguments += ["--gateway-address", str(options.gateway_address)]
    screen.say("starting the platform (control plane, worker, agent, gateway)")
    with family.platform(arguments, home) as platform:
        screen.say(f"it is up: {options.address.url}")
        token = home.token.read_text(encoding="utf-8").strip()
        with Client(Access(options.address.url, token)) as client:
            reported = _report_story(client, screen, home, options)
        report.show(reported, screen)
        file = home.path / "demo-report.json"
        write_atomic(file, json.dumps(reported, indent=2) + "\n")
        screen.plain(f"\nThe same as JSON: {file}")
        if not options.once:
            _invite(screen, options, token, home)
            _stay(platform, screen, home)
    if not reported["ok"]:
        failed = [check["name"] for check in reported["checks"] if not check["ok"]]
        raise EndedBadly(f"the demo did not hold: {'; '.join(failed)}; see {file}")


def _report_story(client: Client, screen: Screen, home: Home, options: argparse.Namespace) -> Json:
    began_at = time.monotonic()
    folder = home.path / "demo"
    folder.mkdir(exist_ok=True)
    screen.say("training two classifiers on scikit-learn's digits and spoiling copies on purpose (once per folder)")
    family.train(folder)
    training: Json = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    log = RequestLog(folder / "requests.jsonl")
    (folder / "requests.jsonl").unlink(missing_ok=True)

    def requests_so_far() -> list[Any]:
        log.read()
        return log.requests

    story = Story(client, folder, screen.say, lambda: screen.rollout(requests_so_far))
    story.clear()
    story.serve(story.push("v1"), options.hold)
    story.gate_on_labels(options.hold)
    label_counts = folder / "labels.json"
    arguments = ["--gateway", str(options.gateway_address), "--service", f"{NAMESPACE}/{SERVICE}"]
    arguments += ["--images", str(folder / "held-out.npz"), "--log", str(folder / "requests.jsonl")]
    arguments += ["--rate", str(options.rate), "--labels-to", options.address.url]
    arguments += ["--token-file", str(home.token), "--label-counts", str(label_counts)]
    with family.traffic(arguments, home.path / "logs" / "demo-traffic.log"):
        poll_until(
            requests_so_far,
            lambda seen: sum(request.ok for request in seen) >= _FIRST_ANSWERS,
            timeout_s=_FIRST_ANSWERS_S,
            every_s=0.1,
            what="the first answers through the gateway",
        )
        screen.say(f"traffic: {options.rate:g} requests per second by HTTP JSON, HTTP binary and gRPC")
        second = story.push("v2")
        # An analysis takes the usual delay of labels from those that came before its rollout.
        story.joined(_FIRST_LABELS)
        screen.say(f"rolling out version {second} by canary")
        good = story.roll_out(second)
        third = story.push("v3")
        screen.say(f"rolling out version {third}, which fails on purpose")
        failing = story.roll_out(third)
        fourth = story.push("v4")
        screen.say(f"rolling out version {fourth}, which is wrong on purpose about three digits, and fails nothing")
        mistaken = story.roll_out(fourth)
        time.sleep(_AFTER_S)
        service = story.service()
    counts = read_counts(label_counts)
    labels = {**asdict(counts), **story.joined(math.ceil(JOINED * counts.sent))}
    return report.build(
        requests=requests_so_far(),
        good=good,
        failing=failing,
        mistaken=mistaken,
        service=service,
        labels=labels,
        training=training,
        seconds=time.monotonic() - began_at,
    )


def _invite(screen: Screen, options: argparse.Namespace, token: str, home: Home) -> None:
    """Print what to look at while it stays up."""
    training = json.loads((home.path / "demo" / "training.json").read_text(encoding="utf-8"))
    tensor = {"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": training["example"]}
    body = json.dumps({"inputs": [tensor]}, separators=(",", ":"))
    url = f"{options.gateway_address.url}/serving/{NAMESPACE}/{SERVICE}/v2/models/{SERVICE}/infer"
    screen.plain("\nIt keeps serving until Ctrl-C. Look at the service and its rollouts:")
    screen.plain(f"  sign in   {options.address.url}/signin/#token={token}")
    screen.plain(f"  service   {options.address.url}/services/{NAMESPACE}/{SERVICE}/")
    screen.plain(f"Ask the model (the image shows a {training['example_label']}):")
    screen.plain(f"  curl -s {url} -H 'content-type: application/json' -d '{body}'")
    screen.plain(f"Or by command, in {Path.cwd()}:")
    for words in (
        f"services show {SERVICE}",
        f"rollouts status {SERVICE}",
        f"models show {MODEL}",
        f"feedback show {SERVICE}",
        f"events {SERVICE}",
    ):
        screen.plain(f"  {_own_command()} {words}")


def _stay(platform: "subprocess.Popen[str]", screen: Screen, home: Home) -> None:
    """Return on Ctrl-C or SIGTERM; CliError when the platform ended by itself."""
    try:
        code = platform.wait()
    except KeyboardInterrupt:
        screen.plain("\nstopping (Ctrl-C again to hurry)")
        return
    raise CliError(f"the platform ended by itself with exit code {code}; see {home.path / 'up.log'}")


def _own_command() -> str:
    """Return this command's name where the shell finds it, else its path."""
    beside = Path(sys.executable).with_name("fairlead")
    if shutil.which("fairlead") or not beside.exists():
        return "fairlead"
    return str(beside.relative_to(Path.cwd())) if beside.is_relative_to(Path.cwd()) else str(beside)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; expected a number above 0")
    return value


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
