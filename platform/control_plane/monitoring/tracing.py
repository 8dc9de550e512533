"""Request ids and traces of tasks: hints carry both, so that the worker's log lines and spans name the request.

The response has the id in `X-Request-ID`, web's log has it in each line, and so has the worker's log while it executes
the request's work. Hints that a task itself sends have no id; they continue its trace. A task of the schedule has a
span only where it fails.
"""

from contextlib import ExitStack
from typing import Any

from celery import current_task
from celery.signals import before_task_publish, task_postrun, task_prerun

from common import log_fields
from common.http import request_id
from integrations.otlp.tracing import CONSUMER, Span, of_process

_HEADER = "fairlead_request_id"
_TRACE = ("traceparent", "tracestate")
_running: dict[str, tuple[ExitStack, Span]] = {}


@before_task_publish.connect
def _hand_on(headers: dict[str, Any] | None = None, **_: object) -> None:
    if headers is None:
        return
    headers.update(of_process.headers())
    if request_id.current() and not current_task:
        headers[_HEADER] = request_id.current()


@task_prerun.connect
def _take_on(task_id: str, task: Any, **_: object) -> None:
    entered = ExitStack()
    offered = task.request.get(_HEADER)
    if offered:
        entered.callback(request_id.end, request_id.begin(offered))
    entered.callback(log_fields.end, log_fields.begin(task=task.name, task_id=task_id))
    caller = {name: str(value) for name in _TRACE if (value := task.request.get(name))}
    attributes = {"messaging.message.id": task_id, "fairlead.request_id": request_id.current() if offered else ""}
    span = entered.enter_context(of_process.span(task.name, CONSUMER, attributes, caller=caller, if_kept=not caller))
    _running[task_id] = entered, span


@task_postrun.connect
def _put_down(task_id: str, state: str | None = None, retval: object = None, **_: object) -> None:
    found = _running.pop(task_id, None)
    if found is None:
        return
    entered, span = found
    if state == "FAILURE":
        span.fail(f"{type(retval).__name__}: {retval}")
    entered.close()
