"""Settle issuances that a crash left between intent and certificate."""

import logging
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from certificates.issuing import key_pool
from certificates.models import Certificate, Issuance, IssuanceState, WrappedAgentKey
from compliance.core import environments
from compliance.keys.base import KeyNotFound, KeyRef, KeyStorage
from compliance.keys.registry import backend_for
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

UNFINISHED_AFTER: Final = timedelta(minutes=10)
"""Longer than any request: the time limits of HSM and database end it before."""
BATCH: Final = 100


def settle(*, now: datetime) -> int:
    """Mark old unfinished issuances as failed and put their keys back into the pool; return how many."""
    stale = Issuance.objects.filter(state=IssuanceState.STARTED, created_at__lt=now - UNFINISHED_AFTER)
    found = list(stale.order_by("created_at", "id").values_list("id", "tenant_id")[:BATCH])
    return each(found, lambda row: _settle(*row, now))


def _settle(issuance_id: UUID, tenant_id: UUID, now: datetime) -> bool:
    with environments.atomic():
        own = Issuance.objects.filter(tenant_id=tenant_id)
        rows = own.select_for_update(of=("self",), skip_locked=True)
        intent = rows.filter(id=issuance_id, state=IssuanceState.STARTED).first()
        if intent is None:
            return False
        log.warning("issuance %s was never finished", intent.serial_number)
        if not Certificate.objects.filter(kms_key_arn=intent.key_uri).exists():
            _put_back(intent.key_uri, now)
        intent.state, intent.finished_at, intent.error = IssuanceState.FAILED, now, "never finished"
        intent.save(update_fields=["state", "finished_at", "error"])
    return True


def _put_back(key_uri: str, now: datetime) -> None:
    wrapped = WrappedAgentKey.objects.filter(key_uri=key_uri).first()
    try:
        if wrapped is not None:
            key = KeyRef(key_uri, bytes(wrapped.spki), KeyStorage.WRAPPED)
        else:
            key = KeyRef(key_uri, backend_for(environments.current()).spki(key_uri))
    except KeyNotFound:
        log.warning("the key of an unfinished issuance is not in its token")
    else:
        key_pool.put_back(key=key, now=now)
