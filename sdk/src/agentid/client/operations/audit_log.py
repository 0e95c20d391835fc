"""The audit log: entries, proofs and the public tree."""

from datetime import datetime

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import Request, given, path, segments
from agentid.client.results.audit_log import AuditEntry, Consistency, LogState


class AuditLog(Group[S]):
    """The audit log: entries, proofs and the public tree."""

    @listing("listAuditLog")
    def list(
        self,
        *,
        action: str | None = None,
        actor_id: str | None = None,
        actor_kind: str | None = None,
        actor_type: str | None = None,
        affected_id: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        event_type: str | None = None,
        limit: int | None = None,
    ) -> Request[Page[AuditEntry]]:
        """Query the audit log."""
        return Request(
            "GET",
            "/v1/audit-log",
            answers.page(AuditEntry),
            query=given(
                action=action,
                actor_id=actor_id,
                actor_kind=actor_kind,
                actor_type=actor_type,
                affected_id=affected_id,
                after=after,
                before=before,
                event_type=event_type,
                limit=limit,
            ),
        )

    @operation("getAuditLogProof")
    def proof(self, entry_id: str) -> Request[str]:
        """An entry's proof, to verify offline."""
        return Request(
            "GET", path("/v1/audit-log/{}/proof", entry_id), answers.text, headers={"Accept": "text/plain"}
        )

    @operation("audit_log_checkpoint_retrieve")
    def checkpoint(self) -> Request[str]:
        """The newest checkpoint."""
        return Request("GET", "/v1/audit-log/checkpoint", answers.text, headers={"Accept": "text/plain"})

    @operation("audit_log_consistency_retrieve")
    def consistency(self, *, from_: int | None = None, to: int | None = None) -> Request[Consistency]:
        """Prove that one tree begins with another."""
        return Request(
            "GET",
            "/v1/audit-log/consistency",
            answers.data(Consistency),
            query=given(**{"from": from_}, to=to),
        )

    @operation("exportAuditLog")
    def export(
        self,
        *,
        action: str | None = None,
        actor_id: str | None = None,
        actor_kind: str | None = None,
        actor_type: str | None = None,
        affected_id: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        event_type: str | None = None,
        format_: str | None = None,
    ) -> Request[bytes]:
        """Export the audit log with proofs."""
        return Request(
            "GET",
            "/v1/audit-log/export",
            answers.octets,
            query=given(
                action=action,
                actor_id=actor_id,
                actor_kind=actor_kind,
                actor_type=actor_type,
                affected_id=affected_id,
                after=after,
                before=before,
                event_type=event_type,
                format=format_,
            ),
            headers={"Accept": "application/jsonl"},
        )

    @operation("audit_log_keys_retrieve")
    def keys(self) -> Request[str]:
        """The log's verifier keys."""
        return Request("GET", "/v1/audit-log/keys", answers.text, headers={"Accept": "text/plain"})

    @operation("audit_log_status_retrieve")
    def status(self) -> Request[LogState]:
        """How far the log is sealed, signed and witnessed."""
        return Request("GET", "/v1/audit-log/status", answers.data(LogState))

    @operation("audit_log_test_checkpoint_retrieve")
    def sandbox_checkpoint(self) -> Request[str]:
        """The newest checkpoint."""
        return Request("GET", "/v1/audit-log/test/checkpoint", answers.text, headers={"Accept": "text/plain"})

    @operation("audit_log_test_consistency_retrieve")
    def sandbox_consistency(self, *, from_: int | None = None, to: int | None = None) -> Request[Consistency]:
        """Prove that one tree begins with another."""
        return Request(
            "GET",
            "/v1/audit-log/test/consistency",
            answers.data(Consistency),
            query=given(**{"from": from_}, to=to),
        )

    @operation("audit_log_test_keys_retrieve")
    def sandbox_keys(self) -> Request[str]:
        """The log's verifier keys."""
        return Request("GET", "/v1/audit-log/test/keys", answers.text, headers={"Accept": "text/plain"})

    @operation("audit_log_test_status_retrieve")
    def sandbox_status(self) -> Request[LogState]:
        """How far the log is sealed, signed and witnessed."""
        return Request("GET", "/v1/audit-log/test/status", answers.data(LogState))

    @operation("audit_log_test_tile_retrieve")
    def sandbox_tile(self, level: int, index: str) -> Request[bytes]:
        """A tile of hashes."""
        return Request(
            "GET",
            path("/v1/audit-log/test/tile/{}/", level) + segments(index),
            answers.octets,
            headers={"Accept": "application/octet-stream"},
        )

    @operation("audit_log_test_tile_entries_retrieve")
    def sandbox_entries(self, index: str) -> Request[bytes]:
        """A bundle of leaves."""
        return Request(
            "GET",
            "/v1/audit-log/test/tile/entries/" + segments(index),
            answers.octets,
            headers={"Accept": "application/octet-stream"},
        )

    @operation("audit_log_tile_retrieve")
    def tile(self, level: int, index: str) -> Request[bytes]:
        """A tile of hashes."""
        return Request(
            "GET",
            path("/v1/audit-log/tile/{}/", level) + segments(index),
            answers.octets,
            headers={"Accept": "application/octet-stream"},
        )

    @operation("audit_log_tile_entries_retrieve")
    def entries(self, index: str) -> Request[bytes]:
        """A bundle of leaves."""
        return Request(
            "GET",
            "/v1/audit-log/tile/entries/" + segments(index),
            answers.octets,
            headers={"Accept": "application/octet-stream"},
        )
