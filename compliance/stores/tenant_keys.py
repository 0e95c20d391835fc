"""References between two tables of tenants' rows, whose joins compare the tenants too.

An id alone names the row. Where tables are distributed by tenant, a join that compares the tenants as well
takes place on the nodes that hold both rows. Both models have a field `tenant`.
"""

from typing import Any

from django.db import models
from django.db.models.lookups import Exact


class ComparesTenants(models.ForeignKey[Any, Any]):
    """What the fields share. To migrations they are Django's own: the column is the same."""

    def get_extra_restriction(self, alias: str | None, related_alias: str | None) -> Any:
        """Return the condition that Django adds to a join; `alias` is the table referred to."""
        ours: Any = self.model._meta.get_field("tenant")
        theirs: Any = self.related_model._meta.get_field("tenant")
        return Exact(theirs.get_col(alias), ours.get_col(related_alias))


class TenantForeignKey(ComparesTenants):
    """As a ForeignKey, to a row of the same tenant."""

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, kwargs


class TenantOneToOneField(ComparesTenants, models.OneToOneField[Any, Any]):
    """As a OneToOneField, with a row of the same tenant."""

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.OneToOneField", args, kwargs
