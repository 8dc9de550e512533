"""Base serializer of the API's request bodies."""

from collections.abc import Mapping
from typing import Any, TypeVar

from rest_framework import serializers

from common.errors import InvalidInput

T = TypeVar("T")


class RequestSerializer(serializers.Serializer[T]):
    """A request body that rejects unknown fields by name, since most are misspelt."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated fields; raises InvalidInput, and DRF's ValidationError."""
        if isinstance(data, Mapping) and (unknown := sorted(map(str, data.keys() - self.fields.keys()))):
            raise InvalidInput(
                f"{unknown[0][:60]} is not a field here; expected {', '.join(self.fields)}", field=unknown[0][:60]
            )
        return super().to_internal_value(data)
