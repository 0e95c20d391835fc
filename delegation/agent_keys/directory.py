"""The HTTP message signatures directory of a tenant's agents (draft-ietf-webbotauth-httpsig-protocol).

The service signs the answer with its token key: it does not hold the agents' keys, by which the draft
recommends a signature each. Only keys of agents that stand are listed.
"""

import hashlib
import json
import time
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from django.conf import settings

from certificates.public.verification import latest_of_agents
from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id
from delegation.agent_keys.models import AgentKey
from delegation.token_keys import keys
from tenancy.models import Tenant
from tenancy.services import TenantNotFound

MEDIA_TYPE: Final = "application/http-message-signatures-directory+json"
TAG: Final = "http-message-signatures-directory"
MAX_AGE_SECONDS: Final = 60
SIGNED_SECONDS: Final = 3_600
MADE_ANEW_AFTER_SECONDS: Final = 3.0
KEPT_DIRECTORIES: Final = 1_000


@dataclass(frozen=True)
class KeyDirectory:
    """A directory and the fields of its signature; `made_at` is in seconds of the monotonic clock."""

    body: bytes
    headers: dict[str, str]
    made_at: float


_kept: BoundedCache[tuple[Environment, UUID], KeyDirectory] = BoundedCache(KEPT_DIRECTORIES)


def read(*, tenant_id: str, now: datetime) -> KeyDirectory:
    """The directory of a tenant in the current environment, made anew once it is some seconds old.

    Raises: TenantNotFound, the HSM's and the database's errors.
    """
    parsed = parse_id(tenant_id)
    if parsed is None:
        raise TenantNotFound()
    name = (environments.current(), parsed)
    kept = _kept.get(name)
    if kept is None or time.monotonic() - kept.made_at >= MADE_ANEW_AFTER_SECONDS:
        kept = _made(parsed, now)
        _kept.put(name, kept)
    return kept


def forget() -> None:
    """Make every directory anew when it is asked for."""
    _kept.clear()


def _made(tenant_id: UUID, now: datetime) -> KeyDirectory:
    made_at = time.monotonic()
    if not Tenant.objects.filter(id=tenant_id).exists():
        raise TenantNotFound()
    rows = list(AgentKey.objects.for_tenant(tenant_id).in_force().newest_first())
    found = latest_of_agents({row.agent_id for row in rows}, now=now)
    standing = [row for row in rows if (one := found.get(row.agent_id)) is not None and one.is_in_force]
    listed = [{**row.jwk, "kid": row.thumbprint, "use": "sig"} for row in standing]
    body = json.dumps({"keys": listed}, separators=(",", ":")).encode()
    return KeyDirectory(body, _signed(body, now), made_at)


def _signed(body: bytes, now: datetime) -> dict[str, str]:
    """The fields by which the service signs a directory for its own authority. Raises: the HSM's errors."""
    key, created = keys.signing_key(), int(now.timestamp())
    digest = f"sha-256=:{b64encode(hashlib.sha256(body).digest()).decode()}:"
    params = (
        f'("@authority";req "content-digest");created={created};expires={created + SIGNED_SECONDS}'
        f';keyid="{key.kid}";alg="ecdsa-p256-sha256";tag="{TAG}"'
    )
    base = (
        f'"@authority";req: {urlsplit(settings.BASE_URL).netloc.lower()}\n'
        f'"content-digest": {digest}\n"@signature-params": {params}'
    )
    r, s = decode_dss_signature(keys.private_half(key).sign(base.encode(), ec.ECDSA(SHA256())))
    value = b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).decode()
    return {
        "Content-Digest": digest,
        "Signature-Input": f"service={params}",
        "Signature": f"service=:{value}:",
    }
