"""Rows that are never changed or deleted; each table's migration adds the triggers that hold it as well."""

from typing import Any, NoReturn

from django.db import models


class AppendOnly(RuntimeError):
    """An append-only row was about to be changed or deleted; a defect of the calling code."""


class AppendOnlyRow(models.Model):
    """A row that is only ever added."""

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
