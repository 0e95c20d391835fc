"""What serializers of several rooms build upon: fields that take JSON types as they are, and a PATCH."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.db.models import Model
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compliance.core.identifiers import parse_id

Row = TypeVar("Row", bound=Model)


@extend_schema_field(OpenApiTypes.UUID)
class IdField(serializers.Field[Any, Any, Any, Any]):
    """The id of a row; the service checks that the tenant has it."""

    def to_internal_value(self, data: Any) -> UUID:
        parsed = parse_id(data)
        if parsed is None:
            raise serializers.ValidationError("Must be a valid UUID.")
        return parsed


class JsonTyped(serializers.Field[Any, Any, Any, Any]):
    """Base of the fields that take a value of `json_types` alone, and not what looks like one."""

    json_types: ClassVar[tuple[type, ...]]

    def to_internal_value(self, data: Any) -> Any:
        # The type itself: true is an int to `isinstance`.
        if type(data) not in self.json_types:
            self.fail("invalid", input=data)
        return super().to_internal_value(data)


class StrictBooleanField(JsonTyped, serializers.BooleanField):
    """true or false."""

    json_types = (bool,)


@extend_schema_field({"type": "boolean", "enum": [True]})
class TrueField(StrictBooleanField):
    """Only `true`."""

    def to_internal_value(self, data: Any) -> bool:
        if super().to_internal_value(data) is not True:
            raise serializers.ValidationError("Must be true.")
        return True


class StrictCharField(JsonTyped, serializers.CharField):
    """A JSON string; numbers and booleans are refused, white space is kept."""

    json_types = (str,)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)


class StrictDateTimeField(serializers.DateTimeField):
    """An ISO 8601 date-time in ASCII; the field it builds on takes the digits of every script."""

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not value.isascii():
            self.fail("invalid", format="ISO 8601")
        return super().to_internal_value(value)


class StrictFloatField(JsonTyped, serializers.FloatField):
    """A JSON number; numeric strings and booleans are refused."""

    json_types = (int, float)


class StrictIntegerField(JsonTyped, serializers.IntegerField):
    """A JSON number without fraction or exponent; 3600.0, "3600" and true are refused."""

    json_types = (int,)


@extend_schema_field({"type": "number", "format": "double", "minimum": 0, "exclusiveMinimum": True})
class PositiveField(StrictFloatField):
    """A number greater than 0."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        value = super().run_validation(data)
        if value is not None and value is not serializers.empty and value <= 0:
            raise serializers.ValidationError("Must be greater than 0.")
        return value


class RowSerializer(serializers.ModelSerializer[Row]):
    """A row as answers show it: nothing of it can be set."""

    @classmethod
    def all_of(cls, rows: Sequence[Row]) -> Collection[Any]:
        """Return the rows as a list shows them."""
        return cls(rows, many=True).data

    def get_extra_kwargs(self) -> dict[str, Any]:
        own: dict[str, Any] = super().get_extra_kwargs()
        return {name: {**own.get(name, {}), "read_only": True} for name in self.Meta.fields}


class ClosedSerializer(serializers.Serializer[Any]):
    """A body without unknown fields; `bounds` are what its schema says beside its fields."""

    bounds: ClassVar[dict[str, Any]] = {"additionalProperties": False}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            said = f"Unknown fields: {', '.join(unknown)[:200]}"
            raise serializers.ValidationError({"non_field_errors": [said]})
        found: dict[str, Any] = super().to_internal_value(data)
        return found


class ChangesSerializer(ClosedSerializer):
    """A PATCH: every field is optional, at least one is named, and none is unknown."""

    bounds: ClassVar[dict[str, Any]] = {"minProperties": 1, **ClosedSerializer.bounds}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Nothing to change: name at least one field")
        return attrs
