"""The contents of a development stack."""

from pathlib import Path

from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from ops.bootstrap import bootstrap


def test_bootstrap_is_safe_to_repeat_and_audited(committed: None, api: ApiClient, tmp_path: Path) -> None:
    state_file = tmp_path / "demo.json"

    first = bootstrap(state_file=state_file, now=now())
    again = bootstrap(state_file=state_file, now=now())

    assert again == first
    assert state_file.stat().st_mode & 0o777 == 0o600
    assert api.as_key(first["live_api_key"]).get("/v1/agents").status_code == 200
    assert api.as_key(first["test_api_key"]).get("/v1/agents").status_code == 200
    granted = AuditEntry.objects.of_type(AuditAction.MEMBERSHIP_CHANGED)
    assert granted.filter(tenant_id=first["tenant_id"]).count() == 1
