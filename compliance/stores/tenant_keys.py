"""Tenants' rows whose joins and updates compare the tenants too. The models have a field `tenant`.

An id alone names the row. Where tables are distributed by tenant, a join that compares the tenants as well
takes place on the nodes that hold both rows, and an update asks the one node that holds its row: asked of
all nodes it would wait for every other update of that kind, while its transaction holds locks.
"""

from typing import Any, ClassVar

from django.db import models
from django.db.models.lookups import Exact


class TenantRow(models.Model):
    """A row whose `save` finds it by its tenant and its id; the tenant never changes."""

    class Meta:
        abstract = True

    def _do_update(self, base_qs: Any, *args: Any, **kwargs: Any) -> Any:
        own = base_qs.filter(tenant_id=getattr(self, "tenant_id"))  # noqa: B009  (a field of each model)
        return super()._do_update(own, *args, **kwargs)


class ComparesTenants(models.ForeignKey[Any, Any]):
    """The base of the fields. To migrations they are Django's own: the column is the same."""

    shown_as: ClassVar[str]

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, self.shown_as, args, kwargs

    def get_extra_restriction(self, alias: str | None, related_alias: str | None) -> Any:
        """Return the condition that Django adds to a join; `alias` is the table referred to."""
        ours: Any = self.model._meta.get_field("tenant")
        theirs: Any = self.related_model._meta.get_field("tenant")
        return Exact(theirs.get_col(alias), ours.get_col(related_alias))


class TenantForeignKey(ComparesTenants):
    """As a ForeignKey, to a row of the same tenant."""

    shown_as = "django.db.models.ForeignKey"


class TenantOneToOneField(ComparesTenants, models.OneToOneField[Any, Any]):
    """As a OneToOneField, with a row of the same tenant."""

    shown_as = "django.db.models.OneToOneField"
