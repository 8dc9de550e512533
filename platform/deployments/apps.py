"""The app of services, revisions and rollouts."""

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        from deployments import deliveries, due, usage  # noqa: PLC0415 - models can be read only now
        from deployments.selectors.works import works_of  # noqa: PLC0415
        from deployments.services import driver_default, measured_on_default  # noqa: PLC0415
        from registry import decisions, moves, outcomes, place, works  # noqa: PLC0415

        usage.register()
        moves.register(due.touch_users_of)
        outcomes.register(deliveries.version_checked)
        decisions.register(deliveries.version_decided)
        works.register(works_of)
        place.register(driver_default, measured_on_default)
