"""Metrics of the fleet: services whose pods are behind, and the open upgrade."""

from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.domain.waves import Phase
from fleet.selectors.upgrades import outdated_services, upgrade_counts, upgrade_query


def fleet_families() -> tuple[GaugeMetricFamily, ...]:
    """Return the families without samples."""
    return (
        GaugeMetricFamily(
            "fairlead_services_behind", "Services with pods of an earlier release, image or cluster file."
        ),
        GaugeMetricFamily(
            "fairlead_fleet_upgrade_services", "Services of the open upgrade by state.", labels=["upgrade", "state"]
        ),
        GaugeMetricFamily("fairlead_fleet_upgrade_paused", "1 while the open upgrade is paused.", labels=["upgrade"]),
    )


def fleet_metrics() -> tuple[Metric, ...]:
    """Return the metrics from the database, by two queries."""
    behind, services, paused = families = fleet_families()
    behind.add_metric([], outdated_services().count())
    upgrade = upgrade_query().filter(is_open=True).first()
    if upgrade is not None:
        name = str(upgrade.pk)
        for state, count in upgrade_counts(upgrade=upgrade).items():
            services.add_metric([name, state.value], count)
        paused.add_metric([name], upgrade.phase == Phase.PAUSED)
    return families
