"""Programs of a service file: their records, of what their folders hold when the file is applied."""

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from django.conf import settings

from clusters.services.cluster_selection import cluster_for
from common.errors import InvalidInput
from deployments.domain.service_file import parse_service, refuse_on
from deployments.domain.service_file.clusters import containers_of
from integrations.artifacts.programs import recorded


def with_records(document: object, *, namespace: str | None, name: str | None, now: datetime) -> object:
    """Return a service file with the record of each program as its `image`; the file itself where it has none.

    Reads every file of the programs: call it outside of transactions.

    Raises:
        InvalidInput: the file is wrong, a program may not be run, or its folder has other content than the file says.
        NotFound: the cluster that it names does not exist.
    """
    spec = parse_service(document, namespace=namespace, name=name)
    programs = {field: its for field, its in containers_of(spec).items() if its.working_dir}
    if not programs:
        return document
    cluster = cluster_for(namespace=spec.namespace, name=spec.name, asked=spec.cluster, now=now)
    refuse_on(cluster.kind, spec)
    written = copy.deepcopy(dict(cast(Mapping[str, Any], document)))
    for field, its in programs.items():
        where = f"{field}.workingDir"
        found = recorded(its.working_dir, settings.PROGRAM_FOLDERS, home=settings.HOME, field=where)
        if its.image and its.image != found:
            raise InvalidInput(
                f"{field}.image is {its.image!r}, the record of another program or of other content: {its.working_dir} "
                f"has {found!r} now; leave it out, since Fairlead writes it when the file is applied",
                field=f"{field}.image",
            )
        _, part, _ = field.split(".")  # spec.predictor.containers[0]
        written["spec"][part]["containers"][0]["image"] = found
    return written
