"""Jobs with a model where models run: builds, tunings and trials."""

from django.apps import AppConfig

from common.hooks import imported_later


class ModelJobsConfig(AppConfig):
    name = "model_jobs"
    label = "model_jobs"

    def ready(self) -> None:
        """Register the kinds of jobs, and those that a version's page lists."""
        from jobs.services import kinds  # noqa: PLC0415 - now models can be read
        from registry import hooks  # noqa: PLC0415

        for folder in ("build", "tuning", "trial"):
            kinds.register(folder, f"model_jobs.{folder}s.services.{folder.upper()}")
        hooks.works.register(imported_later("model_jobs.selectors.works_of"))
