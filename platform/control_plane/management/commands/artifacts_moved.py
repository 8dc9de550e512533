"""`manage.py artifacts_moved`: records a new folder of model files in the database (after a restore)."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Substr

from deployments.models import Revision
from registry.models import ModelVersion


class Command(BaseCommand):
    """Replaces the prefix of every artifact's address."""

    help = "Records a new location of the folder of model files in the database; nothing may run meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("old", help="address of the folder in the database, such as file:///old/artifacts")
        parser.add_argument("new", help="new address of the folder")
        parser.add_argument(
            "--present-in", type=Path, metavar="FOLDER", help="checks that FOLDER contains every artifact"
        )

    def handle(self, *_args: Any, old: str, new: str, present_in: Path | None, **_options: Any) -> None:
        """Change versions and revisions together, or neither."""
        old, new = old.rstrip("/"), new.rstrip("/")
        with transaction.atomic():
            for model in (ModelVersion, Revision):
                moved = Concat(Value(new), Substr(F("artifact_uri"), len(old) + 1))
                model._default_manager.filter(artifact_uri__startswith=f"{old}/").update(artifact_uri=moved)
            if present_in is not None:
                _require_present(present_in, new)


def _require_present(folder: Path, new: str) -> None:
    for version in ModelVersion.objects.filter(artifact_uri__startswith=f"{new}/").select_related("model"):
        name = version.artifact_uri.removeprefix(f"{new}/").split("/")[0]
        if not (folder / name).is_dir():
            raise CommandError(
                f"the files of {version.model.name} version {version.number} ({version.digest}) are missing"
            )
