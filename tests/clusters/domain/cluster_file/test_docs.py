"""The reference page has every field of a cluster file, and no other."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

from clusters.domain.cluster_file import parse_cluster
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.deployments._support.cluster_files import LEAST, MOST

PAGE = Path(__file__).parents[4] / "docs/reference/cluster-file.md"
WHOLE = {"defaults.resources.requests", "jobs.nodeSelector", "artifacts.serviceAccountAnnotations", "pods.nodeSelector"}
"""Objects that are told as one field."""
OF_THIS_MACHINE = {"allowed_registries", "also", "callers", "egress_allowed", "max_model_bytes", "payloads_folder"}
"""Options that the control plane's own settings say, and what `Options.of_namespace` finds."""
KEDA = {"keda": {"prometheus": "http://prometheus.monitoring:9090", "pollingInterval": "5s"}}
WITH_KEDA = {name: value for name, value in MOST.items() if name != "customMetrics"} | KEDA
"""What says `keda` says no `customMetrics`."""
WITH_BUCKET = {
    **MOST,
    "artifacts": {**MOST["artifacts"], "from": "bucket", "bucket": "s3://models/fairlead", "bucketSecret": "reader"},
}
del WITH_BUCKET["artifacts"]["originSecret"]
"""What takes models from a bucket has no origin."""
WITH_ACCOUNTS = {**LEAST, "pods": {"serviceAccountNames": ["models"]}}
"""What names service accounts has no controlPlaneUrl."""
CONNECTION = {"inCluster", "kubeconfig", "kubeconfigPath", "context"}


def _leaves(document: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in document.items():
        if isinstance(value, Mapping) and f"{prefix}{name}" not in WHOLE:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_the_table_has_exactly_the_fields_of_a_cluster_file() -> None:
    told = set(re.findall(r"^\| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE))
    leaves = {*_leaves(MOST), *_leaves(WITH_KEDA), *_leaves(WITH_BUCKET), *_leaves(WITH_ACCOUNTS)}
    assert told == leaves | {f"connection.{name}" for name in CONNECTION} | {"artifacts.cache.nodeFolder"}


def test_a_file_can_say_every_option_of_the_driver() -> None:
    """Whoever adds an option lets `MOST` say it, otherwise than the default is."""
    options, least = parse_cluster(MOST).options, Options(GatewayReference("", ""), "", "", "")
    bucket = parse_cluster(WITH_BUCKET).options.bucket
    options = replace(options, keda=parse_cluster(WITH_KEDA).options.keda, bucket=bucket)
    said_by_file = [each.name for each in fields(Options) if each.name not in OF_THIS_MACHINE]
    assert [name for name in said_by_file if getattr(options, name) == getattr(least, name)] == []
    gateway = fields(GatewayReference)
    assert [each.name for each in gateway if not getattr(options.gateway, each.name)] == []
