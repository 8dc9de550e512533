"""The artifact store of this installation, as the settings say."""

from django.conf import settings

from integrations.artifacts import ArtifactStore


def store() -> ArtifactStore:
    """Return the store that uploads go to."""
    return ArtifactStore(settings.ARTIFACTS_FOLDER, max_bytes=settings.MAX_ARTIFACT_BYTES)
