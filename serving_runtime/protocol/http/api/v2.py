"""V2 inference protocol on the HTTP port, and all the other routes.

Infer paths of loaded models are kept whole with their codec, which remembers the heads of requests; all other paths
go through the routes.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.request import Cancellable, InferRequest, Outcome
from serving_runtime.engine.serving import refusals
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol import context
from serving_runtime.protocol.http.api import docs, generate, metadata, repository, shared_memory, v1
from serving_runtime.protocol.http.api import settings as settings_views
from serving_runtime.protocol.http.api.decode_body import begun
from serving_runtime.protocol.http.api.routes import EVENTS, Call, Route, Routes, of_versions
from serving_runtime.protocol.http.api.sse import EventStream
from serving_runtime.protocol.http.api.wait_for_model import when_there
from serving_runtime.protocol.http.codec.infer import InferCodec
from serving_runtime.protocol.http.codec.render_response import rendered
from serving_runtime.protocol.http.codec.response_head import AnswerForm
from serving_runtime.protocol.http.wire.message import Reply, Request, error_response
from serving_runtime.protocol.http.wire.reader import KeepsHeader
from serving_runtime.protocol.restrictions import Restrictions
from serving_runtime.protocol.settings import RuntimeSettings, defaults
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES, Decoding
from serving_runtime.protocol.tensors.parameters import Forwarding, with_headers

_KEPT_CODECS = 4096
"""Only paths of loaded models are kept, but models come and go."""


class V2Application:
    """Answers the requests of one HTTP port for one engine.

    Args:
        forwarded: names of the headers that become request parameters; None for none.
        settings: what clients may change while the server runs.

    Attributes:
        with_context: whether requests carry theirs to the engine; it may change, and `keeps_header` with it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        restrictions: Restrictions | None = None,
        forwarded: "re.Pattern[str] | None" = None,
        with_context: bool = False,
        settings: RuntimeSettings | None = None,
    ) -> None:
        self._engine = engine
        self._restrictions = restrictions or Restrictions(())
        self._forwarding = Forwarding(forwarded, self._restrictions.headers) if forwarded is not None else None
        self.with_context = with_context
        self._settings = settings if settings is not None else defaults()
        self._infer_restricted = self._restrictions.restricts("inference")
        self._codecs: dict[bytes, InferCodec] = {}
        engine.watch(self._codecs.clear)  # they hold datatypes of answers, which may change
        self._routes = Routes(self._table(), self._guard)

    @property
    def keeps_header(self) -> KeepsHeader | None:
        """Return which headers requests carry; None for none, which costs least."""
        forwarding = self._forwarding
        headers = self._restrictions.headers | (context.HEADERS if self.with_context else frozenset())
        if forwarding is None:
            return (lambda name: name.lower() in headers) if headers else None
        return lambda name: name.lower() in headers or forwarding.takes(name.decode("latin-1"))

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        codec = self._codecs.get(request.target)
        if codec is not None and request.method == b"POST":
            if self._infer_restricted:
                self._guard("inference", request)
            return self._infer(codec, request, reply)
        return self._routes.handle(request, reply)

    def _table(self) -> Sequence[Route]:
        routes = [
            *of_versions(
                "POST",
                "/infer",
                "inference",
                "Run inference",
                self._first_infer,
                takes="InferRequest",
                gives="InferResponse",
            ),
            *of_versions(
                "POST",
                "/infer_stream",
                "inference",
                "Run inference, with responses as server-sent events",
                self._infer_stream,
                takes="InferRequest",
                gives=EVENTS,
            ),
            *metadata.routes(self._engine),
            *repository.routes(self._engine),
            *generate.routes(self._engine, self._completed),
            *v1.routes(self._engine, self._completed),
            *shared_memory.routes(self._engine.shared_memory),
            *settings_views.routes(self._engine, self._settings),
            *docs.routes(self._engine, lambda: self._routes.all),
        ]
        return [
            replace(route, view=when_there(route.view, self._engine)) if route.group == "inference" else route
            for route in routes
        ]

    def _completed(self, decoded: InferRequest, request: Request) -> InferRequest:
        """Return the decoded request with the information in its headers."""
        if decoded.caller != request.caller:
            decoded = decoded._replace(caller=request.caller)
        if self._forwarding is not None:
            decoded = with_headers(decoded, request.headers, self._forwarding)
        if self.with_context:
            decoded = decoded._replace(context=context.from_headers(request.headers))
        return decoded

    def _guard(self, group: str, request: Request) -> None:
        self._restrictions.check(group, request.headers)

    def _first_infer(self, call: Call) -> Cancellable | None:
        """Answer on a new path, and keep its codec where its model is loaded."""
        codec = InferCodec(call.model, call.version, self._engine)
        if self._engine.model_ready(call.model, call.version) and call.request.target == codec.path:
            if len(self._codecs) >= _KEPT_CODECS:
                self._codecs.clear()
            self._codecs[codec.path] = codec
        return self._infer(codec, call.request, call.reply)

    def _infer_stream(self, call: Call) -> Cancellable:
        """Answer with V2's JSON as events, one per response (MLServer)."""
        codec = InferCodec(call.model, call.version, self._engine)

        def decode() -> tuple[InferRequest, AnswerForm]:
            found, form = codec.decode(call.request)
            if not form.outputs.all_json:
                raise InvalidArgument("infer_stream answers in JSON only; leave binary outputs and shared memory out")
            return self._completed(found, call.request), form

        def begin(found: tuple[InferRequest, AnswerForm]) -> Cancellable:
            request, form = found
            empty_final = request.parameters.get("triton_enable_empty_final_response") is True
            events = EventStream(
                call.reply,
                lambda response: b"".join(codec.encode(response, form).chunks),
                shows_empty_final=empty_final,
            )
            events.job = self._engine.stream(request, events.on_done)
            return events.job

        return begun(call, self._engine, decode, begin, slow=codec.is_slow(call.request))

    def _infer(self, codec: InferCodec, request: Request, reply: Reply) -> Cancellable | None:
        if (len(request.body) > SLOW_BYTES or self._engine.shared_memory.allowed) and codec.is_slow(request):
            return Decoding(
                lambda: self._decoded(codec, request),
                lambda found: self._begin(codec, *found, reply),
                lambda error: refusals.count(self._engine, codec.model, codec.version, error),
                lambda error: reply(error_response(error)),
            )
        try:
            decoded, form = self._decoded(codec, request)
        except ServingError as error:
            refusals.count(self._engine, codec.model, codec.version, error)
            raise
        return self._begin(codec, decoded, form, reply)

    def _decoded(self, codec: InferCodec, request: Request) -> tuple[InferRequest, AnswerForm]:
        decoded, form = codec.decode(request)
        if request.headers or self.with_context:
            decoded = self._completed(decoded, request)
        return decoded, form

    def _begin(self, codec: InferCodec, decoded: InferRequest, form: AnswerForm, reply: Reply) -> Cancellable | None:
        def answer(outcome: Outcome) -> None:
            rendered(outcome, reply, codec.encode, codec.answer_is_slow, form)

        return self._engine.infer(decoded, answer)
