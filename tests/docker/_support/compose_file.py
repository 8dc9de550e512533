"""The Compose file, and a container that stays up."""

from tests.docker._support.built import ROOT

FILE = ROOT / "docker" / "compose.yaml"


STAY_UP = ("postgres", "redis", "gateway", "web", "worker", "beat")
