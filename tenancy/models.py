"""Tenants and API keys, in the database of their environment, and console memberships, in the live one."""

from datetime import datetime

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from compliance.api.gate import scope_choices
from compliance.core.identifiers import new_id
from compliance.stores.rows import TenantRows
from tenancy.alarm_budgets import ALARM_BUDGET, LEAST_BUDGET, MOST_BUDGET


class ApiKeyQuerySet(TenantRows["ApiKey"]):
    """API keys of the current environment."""

    def usable(self, now: datetime) -> "ApiKeyQuerySet":
        return self.filter(revoked_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=now))


class Enforcement(models.TextChoices):
    """Modes of an agent that reaches the risk threshold: it is stopped, or that is only recorded."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class Tenant(models.Model):
    """A customer; stored in both databases under one id. The settings belong to the environment.

    `alarm_budget`: the share of an agent's ordinary events that may be medium or high. `owner_required`: only
    agents with an owner are certified.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=255)
    # The database's default serves processes of the release before, which do not know the column.
    enforcement = models.CharField(
        max_length=16,
        choices=Enforcement.choices,
        default=Enforcement.ENFORCE,
        db_default=Enforcement.ENFORCE,
    )
    alarm_budget = models.FloatField(default=ALARM_BUDGET, db_default=ALARM_BUDGET)
    owner_required = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(enforcement__in=Enforcement.values), name="tenancy_enforcement_known"
            ),
            models.CheckConstraint(
                condition=models.Q(alarm_budget__gte=LEAST_BUDGET, alarm_budget__lte=MOST_BUDGET),
                name="tenancy_alarm_budget_in_range",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A credential of a tenant's software, shown once and stored as a SHA-256 digest."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=255, blank=True)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=64, choices=scope_choices))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    successor = models.OneToOneField("self", null=True, on_delete=models.PROTECT, related_name="predecessor")

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "API key"
        verbose_name_plural = "API keys"

    def __str__(self) -> str:
        return f"{self.name or 'key'} ({self.hint})"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class Role(models.TextChoices):
    """The role of a console user in a tenant."""

    OFFICER = "officer", "Compliance officer"
    OFFICER_WEBHOOKS = "officer_webhooks", "Compliance officer who keeps webhooks"
    AUDITOR = "auditor", "Auditor"
    DEVELOPER = "developer", "Developer"


class Membership(models.Model):
    """A console user's role in a tenant. Superusers are operators, and need none."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    tenant_id = models.UUIDField()
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user__username", "id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "tenant_id"], name="tenancy_one_role_in_a_tenant"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="tenancy_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"
