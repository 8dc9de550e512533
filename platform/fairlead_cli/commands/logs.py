"""`fairlead services logs`: logs of a service's replicas, read from the folder of the embedded platform."""

import argparse
from collections import deque
from pathlib import Path

from fairlead_cli.client import path
from fairlead_cli.context import Call, service_path
from fairlead_cli.errors import CliError
from fairlead_cli.output.render import clean
from fairlead_cli.up.home import Home, home_path


def logs_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="NAME or NAMESPACE/NAME")
    parser.add_argument("--revision", help="only replicas of this revision, such as digits-00002")
    parser.add_argument(
        "--request", metavar="ID", help="only lines with this request id, including the logs of web and worker"
    )
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="number of last lines of each log (50)")


def logs(call: Call) -> None:
    """Shows the last log lines of a service's replicas (embedded platform only, run in its folder)."""
    request = call.options.request
    namespace, name = service_path(call.options.service)
    revisions = [each["name"] for each in call.client.get(path("services", namespace, name))["revisions"]]
    wanted = call.options.revision
    if wanted and wanted not in revisions:
        raise CliError(f"service {namespace}/{name} has no revision {wanted}; it has {', '.join(revisions) or 'none'}")
    home = Home(home_path().resolve())
    if not home.logs.is_dir():
        raise CliError(
            f"there are no logs in {home.path}; call this in the folder of `fairlead up` or below it, or name that "
            "with FAIRLEAD_HOME (on Kubernetes: kubectl logs)"
        )
    files = [home.logs / f"{part}.log" for part in (("web", "worker") if request else ())]
    for revision in [wanted] if wanted else revisions:
        files += sorted(home.logs.glob(f"{namespace}.{revision}-*.log"))
    found = {
        file.stem.removeprefix(f"{namespace}."): _last_lines(file, call.options.lines, having=request or "")
        for file in files
        if file.is_file()
    }
    if call.as_json:
        return call.show(found, {})
    for replica, lines in found.items():
        for line in lines:
            print(f"{replica}  {clean(line)}")
    return None


def _last_lines(file: Path, count: int, *, having: str) -> list[str]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        return [line.rstrip("\n") for line in deque((line for line in lines if having in line), maxlen=count)]
