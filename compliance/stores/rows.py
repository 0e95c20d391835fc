"""What rows have in common: those of tenants, and those that are never changed or deleted."""

from typing import Any, ClassVar, NoReturn, Self, TypeVar
from uuid import UUID

from django.db import models

from compliance.core.errors import NotFound
from compliance.core.identifiers import parse_id

Row = TypeVar("Row", bound=models.Model)


class AppendOnly(RuntimeError):
    """An append-only row was about to be changed or deleted; a defect of the calling code."""


class AppendOnlyRow(models.Model):
    """A row that is only ever added; each table's migration adds the triggers that hold it as well."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the row; raises `AppendOnly` if it exists."""
        if not self._state.adding:
            raise AppendOnly(f"A row of {self._meta.label} can't be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise `AppendOnly`."""
        raise AppendOnly(f"A row of {self._meta.label} can't be deleted")


class TenantRows(models.QuerySet[Row]):
    """Rows of tenants in the current environment; `missing` is raised where one is not found."""

    missing: ClassVar[type[NotFound]]

    def for_tenant(self, tenant_id: UUID) -> Self:
        return self.filter(tenant_id=tenant_id)

    def where(self, **lookups: Any) -> Self:
        """Filter by the lookups that have a value; None filters by nothing."""
        return self.filter(**{name: value for name, value in lookups.items() if value is not None})

    def locked(self, *, skip: bool = False) -> Self:
        """Lock the rows until the transaction ends; rows that refer to them can still be created.

        `skip` leaves out those that are locked already.
        """
        return self.select_for_update(of=("self",), no_key=True, skip_locked=skip)

    def find(self, row_id: Any) -> Row:
        """Return the row with an id from a client. Raises: `missing`, also if the id is malformed."""
        found = self.filter(id=parse_id(str(row_id))).first()
        if found is None:
            raise self.missing()
        return found
