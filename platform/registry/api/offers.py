"""`/api/v1/models/{name}/versions/check`: whether files could become a version, before they are sent."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from common.errors import Conflict
from common.identifiers import check_model_name
from registry import selectors
from registry.api.access import OfModel
from registry.api.serializers import OfferCreateSerializer, OfferSerializer
from registry.services.upload_preflight import offer
from registry.storage import store


class VersionCheckView(OfModel, APIView):
    """Files that somebody has and thinks of sending."""

    @idempotent()
    @extend_schema(request=OfferCreateSerializer, responses=OfferSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Say how to send the files as a version, or why they cannot become one; nothing is changed.

        What only the bytes tell, such as a damaged archive, is found when they were sent.
        """
        check_model_name(name)
        files, is_new_model = OfferCreateSerializer(data=request.data).arguments()
        if is_new_model and selectors.model_exists(name=name):
            raise Conflict(
                f"model {name!r} is there already; upload a new version on its page, or choose another name",
                field="name",
            )
        limits = store()
        found = offer(files, model=name, max_bytes=limits.max_bytes, max_files=limits.max_files)
        return Response(OfferSerializer(found).data)
