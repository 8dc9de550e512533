"""Tasks of keys and issuers."""

import logging
from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from access.services.gateways import caller_keys, push_to
from access.services.issuers import keys_refresh
from access.services.keys import tokens_forget
from clusters.models import Cluster
from clusters.services.connection import LOCAL
from common.errors import FairleadError

logger = logging.getLogger(__name__)
_FRESH = timedelta(seconds=1)


@shared_task(name="access.tasks.push_keys", expires=60)
def push_keys() -> None:
    """Send the keys of callers to the gateways that check them; unchanged ones are not written again.

    This machine comes first, which answers at once. Clusters after one that takes its time get the keys as of then.
    """
    read_at, keys = timezone.now(), caller_keys(now=timezone.now())
    for cluster in sorted(Cluster.objects.all(), key=lambda each: (each.kind != LOCAL, each.name)):
        if timezone.now() - read_at > _FRESH:
            read_at, keys = timezone.now(), caller_keys(now=timezone.now())
        try:
            push_to(cluster, keys, clock=timezone.now)
        except FairleadError as error:
            logger.warning("the keys of callers wait for cluster %s: %s", cluster.name, error.message)
        except Exception:  # a fault of ours in one cluster must not keep revocations from the others
            logger.exception("the keys of callers cannot be sent to cluster %s", cluster.name)


@shared_task(name="access.tasks.refresh_issuers", expires=300)
def refresh_issuers() -> None:
    """Fetch the keys of issuers again: they rotate them."""
    keys_refresh(now=timezone.now())


@shared_task(name="access.tasks.forget_tokens", expires=600)
def forget_tokens() -> None:
    """Delete tokens of keys that expired long ago."""
    tokens_forget(now=timezone.now())
