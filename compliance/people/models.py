"""The identity of console users; triggers make it and refuse to change or delete it (migration 0001)."""

from django.conf import settings
from django.db import models


class Person(models.Model):
    """The identity of one user, by which the audit log names the user for ever.

    The database makes it with the user and refuses to delete either: a name may change, an id never means
    somebody else.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="person")
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "people"

    def __str__(self) -> str:
        return str(self.id)
