"""Spans that were counted, and the names by which spans say whose they are."""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from agents.models import Agent
from compliance.core.errors import Conflict, NotFound
from compliance.core.identifiers import new_id
from compliance.stores.rows import TenantRows
from compliance.stores.tenant_keys import TenantForeignKey
from events.models import UNCHECKED
from tenancy.models import Tenant

MAX_NAME = 255


class TracedNameNotFound(NotFound):
    message = "Traced name not found"


class NameMapped(Conflict):
    message = "The name stands for an agent already; delete that first"


class TooManyNames(Conflict):
    message = "The tenant has as many mapped names as it can have"


class CountedSpan(models.Model):
    """A span that became an event or part of one, by `mapping.SpanEvent.spans`; it commits with the event."""

    id = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return str(self.id)


class NameSource(models.TextChoices):
    """Attributes that name an agent, the most telling first."""

    AGENT_ID = "gen_ai.agent.id", "gen_ai.agent.id"
    AGENT_NAME = "gen_ai.agent.name", "gen_ai.agent.name"
    SERVICE = "service.name", "service.name"


class TracedNameQuerySet(TenantRows["TracedName"]):
    missing = TracedNameNotFound

    def mapped(self) -> "TracedNameQuerySet":
        return self.exclude(agent=None)


class TracedName(models.Model):
    """A name in spans and the agent it stands for; without one it was last met at `seen_at`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=32, choices=NameSource.choices)
    name = models.CharField(max_length=MAX_NAME)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="+", null=True, **UNCHECKED)
    seen_at = models.DateTimeField()

    objects = TracedNameQuerySet.as_manager()

    class Meta:
        verbose_name = "traced name"
        ordering = [models.F("agent_id").asc(nulls_first=True), "name", "id"]
        constraints = [
            UniqueConstraint(fields=["tenant", "source", "name"], name="otlp_name_once"),
            CheckConstraint(condition=Q(source__in=NameSource.values), name="otlp_source_known"),
            CheckConstraint(condition=~Q(name=""), name="otlp_name_present"),
        ]

    def __str__(self) -> str:
        return self.name
