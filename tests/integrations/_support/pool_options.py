"""Options of the Kubernetes driver in tests of pools, whose models the registry serves."""

from integrations.clusters.kubernetes.options import GatewayReference, ModelSource, Options

OPTIONS = Options(
    GatewayReference("gateway", "gateways"),
    "runtime:1",
    models_from=ModelSource.REGISTRY,
    name="eu",
    control_plane_url="https://control.example.org",
    payloads_folder="/payloads",
    domain="models.example.org",
)
