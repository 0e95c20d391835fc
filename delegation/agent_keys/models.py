"""Public keys that agents made themselves and proved to possess."""

from uuid import UUID

from django.db import models
from django.db.models import CheckConstraint, F, Index, Q

from compliance.core.identifiers import new_id
from compliance.stores.rows import TenantRows
from delegation.agent_keys.errors import AgentKeyNotFound
from delegation.jose.holder_keys import EDDSA, HolderKey, holder_key
from tenancy.models import Tenant


class AgentKeyQuerySet(TenantRows["AgentKey"]):
    missing = AgentKeyNotFound

    def of_agent(self, agent_id: UUID) -> "AgentKeyQuerySet":
        return self.filter(agent_id=agent_id)

    def in_force(self) -> "AgentKeyQuerySet":
        return self.filter(revoked_at=None)


class AgentKey(models.Model):
    """An Ed25519 key of an agent; `thumbprint` names it (RFC 7638), `x` is its public half (RFC 8037).

    A row stays after its revocation, so that no key is ever registered twice.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    agent_id = models.UUIDField()
    thumbprint = models.CharField(max_length=43, unique=True)
    x = models.CharField(max_length=43)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    objects = AgentKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [Index(fields=["tenant", "agent_id", "-created_at", "-id"], name="agent_keys_of_agent")]
        constraints = [
            CheckConstraint(
                condition=Q(revoked_at=None) | Q(revoked_at__gte=F("created_at")), name="agent_keys_ends"
            )
        ]

    def __str__(self) -> str:
        return self.thumbprint

    @property
    def jwk(self) -> dict[str, str]:
        """The public key (RFC 7517)."""
        return {"kty": "OKP", "crv": "Ed25519", "x": self.x}

    @property
    def holder(self) -> HolderKey:
        return holder_key(self.jwk, algorithm=EDDSA)
