"""`manage.py cluster_apply`: creates or changes a cluster from its file, with access to the database alone.

The chart calls it for the cluster that the control plane runs on, before any token exists.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from clusters.services.clusters import cluster_apply
from common.errors import FairleadError

_ACTOR = "cluster_apply (command line)"


class Command(BaseCommand):
    """Applies a file; the same file again changes nothing."""

    help = "Creates or changes the cluster in a cluster file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="cluster file, as YAML")

    def handle(self, *_args: Any, file: Path, **_options: Any) -> None:
        """Apply the file; CommandError with the field at fault where it is wrong."""
        try:
            document = yaml.safe_load(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from error
        except yaml.YAMLError as error:
            raise CommandError(f"{file} is no YAML: {error}") from error
        try:
            cluster, made = cluster_apply(document=document, name=None, actor=_ACTOR, now=timezone.now())
        except FairleadError as error:
            raise CommandError(f"{file}: {error.message}") from error
        self.stdout.write(f"cluster {cluster.name} {'made' if made else 'is as the file says'}")
