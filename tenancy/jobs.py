"""What jobs on many agents have in common, and what their rows of one agent have."""

from typing import Any

from django.db import models
from django.db.models import QuerySet

from auditlog.vocabulary import Actor, ActorKind
from compliance.core.identifiers import new_id
from tenancy.models import Tenant


class TenantJob(models.Model):
    """A job that somebody of a tenant started."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    started_by = models.CharField(max_length=255)
    started_by_kind = models.CharField(max_length=16, choices=ActorKind.choices)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        ordering = ["-started_at", "-id"]

    @property
    def rows(self) -> QuerySet[Any]:
        """The rows of its agents, which relate to it as `agents`."""
        own: QuerySet[Any] = getattr(self, "agents").filter(tenant_id=self.tenant_id)  # noqa: B009
        return own

    @property
    def actor(self) -> Actor:
        """Who started it, to record what is done later."""
        return Actor(ActorKind(self.started_by_kind), self.started_by)


class AgentOfJob(models.Model):
    """What a job does to one agent; the subclass has a `TenantForeignKey` to the job."""

    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    agent_id = models.UUIDField()

    class Meta:
        abstract = True
        ordering = ["id"]

    def __str__(self) -> str:
        return str(self.agent_id)
