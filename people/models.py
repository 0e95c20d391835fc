"""Console users: identity, one-time links, accounts of single sign-on; django-allauth has the rest.

Triggers make and guard the identity.
"""

from django.conf import settings
from django.db import models

from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnlyRow


class Person(AppendOnlyRow):
    """The identity of one user, by which the audit log names the user for ever.

    The database makes it with the user and refuses to delete either: a name may change, an id never means
    somebody else.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="person")
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "people"


class OneTimeLink(models.Model):
    """The link by which a person sets a password once, stored as a SHA-256 digest; a new one replaces it.

    One that `signs_in` does that instead of setting a password, where single sign-on is the only way.
    """

    person = models.OneToOneField(Person, primary_key=True, on_delete=models.PROTECT, related_name="link")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    signs_in = models.BooleanField(default=False, db_default=False)


class ExternalIdentity(models.Model):
    """The account at an identity provider by which a person signs in: its issuer and subject.

    Never its e-mail address, which the provider may give to somebody else.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="external_identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    linked_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="people_identity_of_one"),
            models.UniqueConstraint(fields=["person", "issuer"], name="people_one_identity"),
        ]


class CacheEntry(models.Model):
    """A row of Django's cache, where django-allauth counts attempts and keeps used codes."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "people_cache"
