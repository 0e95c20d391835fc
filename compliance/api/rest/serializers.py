"""Serializers that several rooms build upon."""

from typing import Any

from rest_framework import serializers


class ChangesSerializer(serializers.Serializer[Any]):
    """A PATCH: every field is optional, at least one is named, and none is unknown."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(f"Unknown fields: {', '.join(unknown)[:200]}")
        if not attrs:
            raise serializers.ValidationError("Nothing to change: name at least one field")
        return attrs
