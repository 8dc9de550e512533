"""Static files under ASGI: WhiteNoise, except that a file is sent whole.

WhiteNoise returns Django a file to stream, which an asynchronous server has to read in its event loop, with a warning
for each. The bundle's files are a few dozen kilobytes, so they are read in the middleware's thread.
"""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Serves files under `STATIC_URL` with WhiteNoise's headers."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """Return the file, or its requested range."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
