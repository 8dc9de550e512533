"""Request id propagation: hints carry the id, so that the worker's log lines name the originating request.

The response has the id in `X-Request-ID`, web's log has it in each line, and so has the worker's log while it executes
the request's work. Hints that a task itself sends have no id.
"""

from contextvars import Token
from typing import Any

from celery import current_task
from celery.signals import before_task_publish, task_postrun, task_prerun

from common.http import request_id

_HEADER = "fairlead_request_id"
_tokens: dict[str, Token[str]] = {}


@before_task_publish.connect
def _hand_on(headers: dict[str, Any] | None = None, **_: object) -> None:
    if headers is not None and request_id.current() and not current_task:
        headers[_HEADER] = request_id.current()


@task_prerun.connect
def _take_on(task_id: str, task: Any, **_: object) -> None:
    offered = task.request.get(_HEADER)
    if offered:
        _tokens[task_id] = request_id.begin(offered)


@task_postrun.connect
def _put_down(task_id: str, **_: object) -> None:
    token = _tokens.pop(task_id, None)
    if token is not None:
        request_id.end(token)
