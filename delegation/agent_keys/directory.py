"""The HTTP message signatures directory of a tenant's agents (draft-ietf-webbotauth-httpsig-protocol).

The service signs the answer with its token key: it does not hold the agents' keys, by which the draft
recommends a signature each. Only keys of agents that stand are listed.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from jwt.algorithms import ECAlgorithm

from certificates.public.verification import latest_of_agents
from compliance.api.rest.renderers import dumps
from compliance.core.bounded_cache import RecentlyRead
from compliance.core.encodings import b64_encode
from compliance.core.identifiers import parse_id
from delegation.agent_keys.models import AgentKey
from delegation.token_keys import keys
from tenancy.models import Tenant
from tenancy.services import TenantNotFound

MEDIA_TYPE: Final = "application/http-message-signatures-directory+json"
TAG: Final = "http-message-signatures-directory"
MAX_AGE_SECONDS: Final = 60
SIGNED_SECONDS: Final = 3_600


@dataclass(frozen=True)
class KeyDirectory:
    """A directory and the fields of its signature."""

    body: bytes
    headers: dict[str, str]


known: RecentlyRead[UUID, KeyDirectory] = RecentlyRead(1_000)
_ES256: Final = ECAlgorithm(ECAlgorithm.SHA256)


def read(*, tenant_id: str, now: datetime) -> KeyDirectory:
    """The directory of a tenant in the current environment, as it was a moment ago.

    Raises: TenantNotFound, the HSM's and the database's errors.
    """
    parsed = parse_id(tenant_id)
    if parsed is None:
        raise TenantNotFound()
    read_at, found = monotonic(), known.of([parsed]).get(parsed)
    if found is None:
        found = _made(parsed, now)
        known.keep({parsed: found}, read_at=read_at)
    return found


def _made(tenant_id: UUID, now: datetime) -> KeyDirectory:
    if not Tenant.objects.filter(id=tenant_id).exists():
        raise TenantNotFound()
    rows = list(AgentKey.objects.for_tenant(tenant_id).in_force())
    found = latest_of_agents({row.agent_id for row in rows}, now=now)
    standing = [row for row in rows if (one := found.get(row.agent_id)) is not None and one.is_in_force]
    listed = [{**row.jwk, "kid": row.thumbprint, "use": "sig"} for row in standing]
    body = dumps({"keys": listed})
    return KeyDirectory(body, _signed(body, now))


def _signed(body: bytes, now: datetime) -> dict[str, str]:
    """The fields by which the service signs a directory for its own authority. Raises: the HSM's errors."""
    key, created = keys.signing_key(), int(now.timestamp())
    digest = f"sha-256=:{b64_encode(hashlib.sha256(body).digest())}:"
    params = (
        f'("@authority";req "content-digest");created={created};expires={created + SIGNED_SECONDS}'
        f';keyid="{key.kid}";alg="ecdsa-p256-sha256";tag="{TAG}"'
    )
    base = (
        f'"@authority";req: {urlsplit(settings.BASE_URL).netloc.lower()}\n'
        f'"content-digest": {digest}\n"@signature-params": {params}'
    )
    value = b64_encode(_ES256.sign(base.encode(), keys.private_half(key)))
    return {
        "Content-Digest": digest,
        "Signature-Input": f"service={params}",
        "Signature": f"service=:{value}:",
    }
