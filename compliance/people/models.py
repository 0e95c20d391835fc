"""Console users: identity, second factors, one-time links, sessions, lock-out, accounts of single sign-on.

Triggers make and guard the identity (migration 0001).
"""

from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.module_loading import import_string

from compliance.core.identifiers import new_id
from compliance.stores.append_only import AppendOnlyRow


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

    def __str__(self) -> str:
        return str(self.id)


class Authenticator(models.Model):
    """An authenticator app that a person signs in with: a TOTP secret (RFC 6238), encrypted.

    No code is accepted whose time step is not after `last_step`.
    """

    person = models.OneToOneField(
        Person, primary_key=True, on_delete=models.PROTECT, related_name="authenticator"
    )
    secret = models.BinaryField()
    last_step = models.BigIntegerField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.person_id)


class SecurityKey(models.Model):
    """A security key or passkey of a person (a WebAuthn credential): its public key, in COSE.

    `transports` are the browser's hints how to reach it, separated by commas.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="security_keys")
    name = models.CharField(max_length=64)
    credential_id = models.BinaryField(max_length=1023, unique=True)
    public_key = models.BinaryField()
    sign_count = models.BigIntegerField()
    transports = models.CharField(max_length=100, default="", blank=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return str(self.id)


class ChallengePurpose(models.TextChoices):
    """What a security key is asked for."""

    SIGN_IN = "sign_in"
    CONFIRM = "confirm"
    REGISTER = "register"


class KeyChallenge(models.Model):
    """What a security key signs once, until `expires_at`; the session that it was given to knows its id."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="key_challenges")
    purpose = models.CharField(max_length=16, choices=ChallengePurpose.choices)
    octets = models.BinaryField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.id)


class SecondStepTries(models.Model):
    """Wrong codes and security keys in a row; nothing of the person is accepted before `closed_until`."""

    person = models.OneToOneField(Person, primary_key=True, on_delete=models.PROTECT, related_name="tries")
    failures = models.PositiveIntegerField(default=0)
    closed_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return str(self.person_id)


class RecoveryCode(models.Model):
    """A code that signs in once without app or key; stored as a SHA-256 digest, removed when used."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="recovery_codes")
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "digest"], name="people_code_once")]

    def __str__(self) -> str:
        return str(self.id)


class OneTimeLink(models.Model):
    """The link by which a person sets a password once, stored as a SHA-256 digest; a new one replaces it.

    One that `signs_in` does that instead of setting a password, where single sign-on is the only way.
    """

    person = models.OneToOneField(Person, primary_key=True, on_delete=models.PROTECT, related_name="link")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    signs_in = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return str(self.person_id)


class ConsoleSession(AbstractBaseSession):
    """A browser's session; `person` and the fields after it are set once somebody has signed in with it."""

    id = models.UUIDField(null=True, unique=True, editable=False)
    person = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="sessions")
    started_at = models.DateTimeField(null=True)
    address = models.CharField(max_length=45, default="", blank=True)
    browser = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        db_table = "people_session"

    def __str__(self) -> str:
        return str(self.id)

    @classmethod
    def get_session_store_class(cls) -> Any:
        """Return the store, as `SESSION_ENGINE` names it."""
        return import_string(f"{settings.SESSION_ENGINE}.SessionStore")


class Door(models.Model):
    """Wrong passwords in a row to a person's account: of a known browser, or of all unknown ones (empty)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="doors")
    browser = models.CharField(max_length=64, default="", blank=True)
    failures = models.PositiveIntegerField(default=0)
    closed_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "browser"], name="people_one_door")]

    def __str__(self) -> str:
        return str(self.id)


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

    def __str__(self) -> str:
        return str(self.id)
