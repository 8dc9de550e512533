"""Tasks keep their names, wherever their modules go: a worker of the release before reads the same queue."""

import ast
import inspect
from collections.abc import Iterator
from datetime import timedelta

from celery import Task

from control_plane.celery import app
from tests.nets._support.modules import modules, tree
from tests.nets._support.recording import check

DECORATORS = {"shared_task", "task"}


def tasks() -> dict[str, "Task[..., object]"]:
    """Return our tasks by the name that a message has."""
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if task.__module__.partition(".")[0] in ours()}


def ours() -> set[str]:
    return {module.room for module in modules().values()}


def lines() -> Iterator[str]:
    """Yield tasks with what a message to them has, the queue, and the schedule of the beat in seconds."""
    for name, task in sorted(tasks().items()):
        expires = task.expires.total_seconds() if isinstance(task.expires, timedelta) else task.expires
        yield f"task {name}{inspect.signature(task.run)} expires={expires} queue={getattr(task, 'queue', None)}"
    for name, entry in sorted(app.conf.beat_schedule.items()):
        rest = {key: value for key, value in entry.items() if key not in ("task", "schedule")}
        yield f"beat {name} {entry['task']} every {entry['schedule']} s {rest or ''}".rstrip()
    for setting in ("task_default_queue", "task_serializer", "accept_content", "timezone", "task_routes"):
        yield f"setting {setting} {app.conf[setting]}"


def unnamed() -> Iterator[str]:
    """Yield the tasks whose name is that of their module, since their decorator gives none."""
    for module in modules().values():
        if "shared_task" not in module.text:
            continue
        for function in (node for node in ast.walk(tree(module.name)) if isinstance(node, ast.FunctionDef)):
            for each in function.decorator_list:
                called = each.func if isinstance(each, ast.Call) else each
                named = isinstance(each, ast.Call) and any(word.arg == "name" for word in each.keywords)
                if ast.unparse(called).rpartition(".")[2] in DECORATORS and not named:
                    yield f"{module.name}.{function.name}"


def test_tasks_are_as_they_were() -> None:
    check("tasks.txt", "a task", lines())


def test_each_task_has_a_name_of_its_own() -> None:
    assert list(unnamed()) == [], "give shared_task a name, which stays when the module is moved"


def test_what_the_beat_sends_is_a_task() -> None:
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= tasks().keys()
