"""A job whose worker was killed is due again within seconds; one whose worker lives stays claimed."""

import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from jobs.domain.attempts import Status
from jobs.services import claim as claims
from jobs.services.claim_renewal import LEASE, RENEW_EVERY_S
from registry.models import ModelImport
from registry.services.imports import IMPORT

DEADLINE_S = 60.0
WORKER = """
import sys, time
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
import django
django.setup()
from django.utils import timezone
from jobs.services import claim as claims
from jobs.services.claim_renewal import LEASE, RENEW_EVERY_S, held
from registry.services.imports import IMPORT
claim = claims.begin(IMPORT, int(sys.argv[2]), now=timezone.now(), lease=LEASE)
renewed = 0
def renew():
    global renewed
    renewed += 1
    return claims.renew(IMPORT, claim, progress={}, now=timezone.now(), lease=LEASE)
with held("job", renew, every_s=RENEW_EVERY_S):
    while renewed < 2:
        time.sleep(0.05)
    print("renewed", flush=True)
    time.sleep(600)
"""


@pytest.mark.django_db(transaction=True)
def test_a_job_is_due_again_soon_after_its_worker_was_killed() -> None:
    now = timezone.now()
    row = ModelImport.objects.create(model="digits", uri="file:///models/digits", next_try_at=now, created_at=now)
    command = [sys.executable, "-c", WORKER, str(connection.settings_dict["NAME"]), str(row.pk)]
    with subprocess.Popen(command, cwd=settings.ROOT / "platform", stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "renewed\n"
            assert claims.due(IMPORT, now=timezone.now(), limit=9) == []
        finally:
            worker.kill()
    killed = time.monotonic()
    while claims.due(IMPORT, now=timezone.now(), limit=9) != [row.pk]:
        assert time.monotonic() < killed + DEADLINE_S
        time.sleep(0.05)
    took = timedelta(seconds=time.monotonic() - killed)
    assert LEASE / 2 < took < LEASE + timedelta(seconds=1)
    row.refresh_from_db()
    assert (row.status, row.attempts) == (Status.PENDING, 1)
    assert LEASE + timedelta(seconds=RENEW_EVERY_S) < timedelta(seconds=10)
