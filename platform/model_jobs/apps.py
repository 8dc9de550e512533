"""Jobs with a model where models run: builds, tunings and trials."""

from django.apps import AppConfig


class ModelJobsConfig(AppConfig):
    name = "model_jobs"
    label = "model_jobs"

    def ready(self) -> None:
        """Register the kinds of jobs."""
        from jobs.services import kinds  # noqa: PLC0415 - now models can be read

        for folder in ("build", "tuning", "trial"):
            kinds.register(folder, f"model_jobs.{folder}s.services.{folder.upper()}")
