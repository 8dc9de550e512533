"""ASGI handler of the control plane: refuses anonymous floods of the API before Django's middleware runs."""

from typing import Any

from accounts.auth import rate_limits
from common.http.asgi import StreamingASGIHandler, refuse


class ControlPlaneHandler(StreamingASGIHandler):
    """The ASGI application; `control_plane.asgi` makes the one instance."""

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        verdict = rate_limits.refused_at_once(scope)
        if verdict is None:
            await super().handle(scope, receive, send)
        else:
            await refuse(send, 429, "throttled", rate_limits.anonymous_sentence(verdict), verdict.headers)
