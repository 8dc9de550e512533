"""Following of a service's model: the version of its alias, or the import that it waits for."""

from datetime import datetime

from deployments.models import InferenceService
from deployments.services.files.import_models import import_follow
from deployments.services.services import alias_follow


def model_follow(*, service_id: int, now: datetime) -> None:
    """Roll out what the model of a service's file means now, if that is another version.

    Most files name a version. Each turn to the service reads whether its file does, without the rest of the row.
    """
    known = InferenceService.objects.filter(pk=service_id, deleting_at=None)
    found = known.values_list("document__spec__predictor__model__storageUri", "awaited_import").first()
    if found is None:
        return
    uri, awaited = found
    if "@" in str(uri):
        alias_follow(service_id=service_id, now=now)
    if awaited is not None:
        import_follow(service_id=service_id, now=now)
