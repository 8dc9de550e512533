"""URL configuration: health and metrics, the API, the pages."""

from django.urls import include, path, re_path

from common.http.unmatched_paths import NothingHereView
from control_plane import health
from control_plane.openapi_document import DocumentView

handler400 = "common.http.error_pages.bad_request"
handler404 = "console.web.not_found.nowhere_page"
urlpatterns = [
    path("healthz", health.live),
    path("readyz", health.ready),
    path("metrics", health.metrics),
    path("api/v1/schema/", DocumentView.as_view(), name="schema"),
    path("api/v1/", include("accounts.api.urls")),
    path("api/v1/", include("registry.api.urls")),
    path("api/v1/", include("clusters.api.urls")),
    path("api/v1/", include("events.api.urls")),
    path("api/v1/", include("usage.api.urls")),
    path("api/v1/", include("sealed_secrets.api.urls")),
    path("api/v1/", include("deployments.api.urls")),
    path("api/v1/", include("access.api.urls")),
    path("api/v1/", include("gpus.api.urls")),
    path("api/v1/", include("feedback.api.urls")),
    path("api/v1/", include("fleet.api.urls")),
    path("api/v1/", include("pools.api.urls")),
    path("api/v1/", include("recordings.api.urls")),
    path("api/v1/", include("model_jobs.api.urls")),
    re_path(r"^api/", NothingHereView.as_view()),
    path("", include("accounts.urls")),
    path("", include("access.urls")),
    path("", include("registry.urls")),
    # Templates name these pages in one namespace.
    path(
        "",
        include(
            (
                [
                    path("", include("console.urls")),
                    path("", include("clusters.urls")),
                    path("", include("events.urls")),
                    path("", include("usage.urls")),
                    path("", include("deployments.urls")),
                    path("", include("gpus.urls")),
                    path("", include("fleet.urls")),
                    path("", include("pools.urls")),
                    path("", include("recordings.urls")),
                    path("", include("feedback.urls")),
                    path("", include("model_jobs.urls")),
                ],
                "deployments",
            )
        ),
    ),
]
