"""The app of services, revisions and rollouts."""

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        from deployments.reconcile import schedule
        from deployments.selectors import model_uses  # noqa: PLC0415 - models can be read only now
        from deployments.services import driver_default, measured_on_default  # noqa: PLC0415
        from events import delivery
        from model_jobs.selectors import works_of  # noqa: PLC0415
        from registry import decisions, moves, outcomes, place, works  # noqa: PLC0415

        model_uses.register()
        moves.register(schedule.touch_users_of)
        outcomes.register(delivery.version_checked)
        decisions.register(delivery.version_decided)
        works.register(works_of)
        place.register(driver_default, measured_on_default)
