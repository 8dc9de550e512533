"""Carries a request's id along with the hints it sends, so that the worker's log lines name the request behind them.

The answer to the request has the id in `X-Request-ID`, the log of web has it in each line, and so has the log of the
worker while it does what the request asked for. What a task sends in turn is the task's own doing and has no id.
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
