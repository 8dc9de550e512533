"""Jobs with a model where models run: builds, tunings and trials."""

from django.apps import AppConfig


class ModelJobsConfig(AppConfig):
    name = "model_jobs"
    label = "model_jobs"
