"""Secrets of services on the local cluster: named values of a namespace, encrypted at rest."""

from django.db import models


class SealedSecret(models.Model):
    """A secret of a namespace, as service files name it.

    Attributes:
        changed_at, changed_by: of its last change, a new value included.
    """

    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="sealed_secret_once")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class SealedValue(models.Model):
    """A value of a secret.

    Attributes:
        sealed: the value, encrypted (`common.encryption`).
    """

    secret = models.ForeignKey(SealedSecret, on_delete=models.CASCADE, related_name="values")
    key = models.CharField(max_length=253)
    sealed = models.TextField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["secret", "key"], name="sealed_value_once")]

    def __str__(self) -> str:
        return f"{self.secret} {self.key}"
