"""`/api/v1/usage`: requests, errors, rows, bytes and time of replicas by caller, service and time."""

from datetime import datetime
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import Place
from accounts.auth.permissions import caller_token
from common.errors import InvalidInput
from common.http.downloads import Attachment
from usage.domain.month import Month
from usage.domain.report import DEFAULT_GROUPS, GROUPS, Line, parse_groups
from usage.selectors import last_read, usage_query
from usage.selectors.csv_file import csv_pieces
from usage.selectors.reports import Asked, prices, usage_report

PARAMETERS = [
    OpenApiParameter("month", str, description="A calendar month in UTC, such as 2026-01; the present one if absent."),
    OpenApiParameter("team", str, description="Only keys of this team."),
    OpenApiParameter("service", str, description="Only this service, `<namespace>/<name>`."),
    OpenApiParameter("key", str, description="Only this key."),
    OpenApiParameter(
        "by",
        str,
        description=f"What to group by, separated by commas: some of {', '.join(f'`{each}`' for each in GROUPS)}. "
        f"`{','.join(DEFAULT_GROUPS)}` if absent.",
    ),
]


class UsageLineSerializer(serializers.Serializer[Line]):
    """Usage of one group; fields that are not grouped by are absent."""

    team = serializers.CharField(required=False, help_text="Team of the key; empty for callers without a key.")
    key = serializers.CharField(required=False, help_text="Empty for callers without a key.")
    service = serializers.CharField(required=False, help_text="`<namespace>/<name>`.")
    revision = serializers.CharField(required=False, help_text="Empty for requests that the gateway refused.")
    day = serializers.CharField(required=False, help_text="In UTC, such as 2026-01-31.")
    hour = serializers.CharField(required=False, help_text="In UTC, such as 2026-01-31T12:00Z.")
    requests = serializers.IntegerField()
    errors = serializers.IntegerField(  # type: ignore[assignment]  # declared fields become no attributes
        help_text="Requests whose status was not 1xx to 3xx, or for gRPC not OK."
    )
    rows = serializers.IntegerField(
        help_text="Rows of requests without an error: the batch of each, or 1 where the model does not batch."
    )
    bytes_in = serializers.IntegerField(help_text="Bytes of requests, without headers.")
    bytes_out = serializers.IntegerField(help_text="Bytes of answers, without headers.")
    model_seconds = serializers.FloatField(help_text="Time that replicas worked on the requests.")
    cost = serializers.FloatField(allow_null=True, help_text="In `currency`; null without a price.")


class UsageSerializer(serializers.Serializer[Any]):
    """Usage of a month by group."""

    month = serializers.CharField()
    read_at = serializers.DateTimeField(allow_null=True, help_text="When the gateway's access log was last read.")
    currency = serializers.CharField(help_text="Of the prices; empty where none are set.")
    lines = UsageLineSerializer(many=True)


class _Usage(APIView):
    """What both views of usage share."""

    def place(self) -> Place:
        """Return the required place: any; usage of teams that are not the caller's is left out."""
        return Place.anywhere()

    def lines(self) -> tuple[Month, tuple[str, ...], list[Line]]:
        """Return the month, what is grouped by, and the usage."""
        query = self.request.query_params
        month = Month.parse(query["month"]) if "month" in query else Month.of(timezone.now())
        by = parse_groups(query.get("by", ""))
        service = query.get("service", "")
        if service and service.count("/") != 1:
            raise InvalidInput(f"service is {service[:150]!r}; expected NAMESPACE/NAME", field="service")
        asked = Asked(month, *(query.get(name, "") for name in ("team", "service", "key")))
        return month, by, usage_report(usage_query(token=caller_token(self.request)), asked, by)


class UsageView(_Usage):
    """Usage."""

    @extend_schema(parameters=PARAMETERS, responses=UsageSerializer)
    def get(self, _request: Request) -> Response:
        """Return the usage of a month by keys of the caller's teams; administrators of the installation see all."""
        month, by, lines = self.lines()
        currency, read = prices().currency, last_read()
        read_at: datetime | None = None if read is None else read.read_at
        return Response(
            {
                "month": str(month),
                "read_at": read_at,
                "currency": currency,
                "lines": [_line(line, by, currency) for line in lines],
            }
        )


class UsageExportView(_Usage):
    """Usage as a file."""

    @extend_schema(parameters=PARAMETERS, responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, _request: Request) -> HttpResponseBase:
        """Return the same as CSV, one line a group."""
        month, by, lines = self.lines()
        pieces = csv_pieces(lines, by, prices().currency)
        return Attachment(pieces, filename=f"usage-{month}.csv", content_type="text/csv; charset=utf-8")


def _line(line: Line, by: tuple[str, ...], currency: str) -> dict[str, object]:
    names = ("requests", "errors", "rows", "bytes_in", "bytes_out", "model_seconds")
    cost = line.cost if currency else None
    return dict(zip(by, line.group, strict=True)) | {name: getattr(line, name) for name in names} | {"cost": cost}
