"""`/api/v1/models/{name}/versions/check`: validates files before their upload."""

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
from registry.services.quotas import check_quota
from registry.services.upload_preflight import offer
from registry.storage import store


class VersionCheckView(OfModel, APIView):
    """Check of files before their upload."""

    @idempotent()
    @extend_schema(request=OfferCreateSerializer, responses=OfferSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Check whether the files can become a version, and return how to upload them. Changes nothing.

        Errors in the content, such as a damaged archive, are found only after the upload.
        """
        check_model_name(name)
        files, is_new_model = OfferCreateSerializer(data=request.data).arguments()
        if is_new_model and selectors.model_exists(name=name):
            raise Conflict(
                f"model {name!r} is there already; upload a new version on its page, or choose another name",
                field="name",
            )
        check_quota(model=name, size_bytes=sum(file.size_bytes for file in files))
        limits = store()
        found = offer(files, model=name, max_bytes=limits.max_bytes, max_files=limits.max_files)
        return Response(OfferSerializer(found).data)
