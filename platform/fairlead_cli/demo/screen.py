"""Progress display of the demo: a live table in a terminal, plain lines where the output is a file or a CI log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairlead_cli.client import Json
from fairlead_cli.commands import rollout_view
from fairlead_cli.demo.evaluation import Check
from fairlead_cli.demo.requests import Request
from fairlead_cli.output import render

_LINE_AT_LEAST_EVERY_S = 5.0


class Screen:
    """The demo's output."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began_at = time.monotonic()

    def say(self, text: str) -> None:
        """Print one message, with the seconds since the start."""
        self._console.print(
            f"{time.monotonic() - self._began_at:6.1f} s  {text}", markup=False, highlight=False, soft_wrap=True
        )

    def plain(self, text: str = "") -> None:
        """Print the text as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def rollout(self, read: Callable[[], list[Request]]) -> Iterator[Callable[[Json], None]]:
        """Yield a function that shows a rollout's state; `read` returns all requests so far."""
        if not self._console.is_terminal:
            yield self._lines(read)
            return
        with Live(console=self._console, transient=True, refresh_per_second=8) as live:
            yield lambda rollout: live.update(Group(rollout_view.live(rollout), _traffic(read(), rollout)))

    def _lines(self, read: Callable[[], list[Request]]) -> Callable[[Json], None]:
        reported: dict[str, Any] = {"state": None, "at": 0.0}

        def draw(rollout: Json) -> None:
            now = time.monotonic()
            state = (rollout["phase"], rollout["step_index"], rollout["weight_actual"], rollout["reason"]["code"])
            if state == reported["state"] and now - reported["at"] < _LINE_AT_LEAST_EVERY_S:
                return
            reported.update(state=state, at=now)
            requests = read()
            failed = sum(not request.ok for request in requests)
            self.say(f"{rollout_view.line(rollout)} [{len(requests)} requests, {failed} failed]")

        return draw

    def table(self, title: str, rows: list[dict[str, Any]], columns: render.Columns) -> None:
        """Print a finished table."""
        self.plain(f"\n{title}")
        self.plain("\n".join(f"  {line}" for line in render.table(rows, columns).splitlines()))

    def checks(self, checks: list[Check]) -> None:
        """Print the result of each check."""
        self.plain("\nWhat had to hold")
        for check in checks:
            mark = Text("  ok    " if check.ok else "  FAILED", style="green" if check.ok else "bold red")
            self._console.print(mark, Text(f"{check.name}: {check.message}"), soft_wrap=True)


def _traffic(requests: list[Request], rollout: Json) -> Table:
    """Return the client's view of the two revisions so far."""
    table = Table("as the client sees it", "requests", "failed", "correct")
    for role, revision in (("stable", rollout["from_revision"]), ("canary", rollout["to_revision"])):
        own = [request for request in requests if request.revision == revision]
        answered = [request for request in own if request.ok]
        correct = 100 * sum(request.correct for request in answered) / len(answered) if answered else None
        table.add_row(f"{revision} ({role})", str(len(own)), str(len(own) - len(answered)), render.percent(correct))
    return table
