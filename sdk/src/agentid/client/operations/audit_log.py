"""The audit log: entries, proofs and the public tree."""

from datetime import datetime

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import Request, given, path, segments
from agentid.client.results.audit_log import AuditEntry, Consistency, LogState

TREE, SANDBOX_TREE = "/v1/audit-log", "/v1/audit-log/test"


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
        return _text(path("/v1/audit-log/{}/proof", entry_id))

    @operation("audit_log_checkpoint_retrieve")
    def checkpoint(self) -> Request[str]:
        """The newest checkpoint."""
        return _text(f"{TREE}/checkpoint")

    @operation("audit_log_consistency_retrieve")
    def consistency(self, *, from_: int | None = None, to: int | None = None) -> Request[Consistency]:
        """Prove that one tree begins with another."""
        return _consistency(TREE, from_, to)

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
        return _text(f"{TREE}/keys")

    @operation("audit_log_status_retrieve")
    def status(self) -> Request[LogState]:
        """How far the log is sealed, signed and witnessed."""
        return Request("GET", f"{TREE}/status", answers.data(LogState))

    @operation("audit_log_test_checkpoint_retrieve")
    def sandbox_checkpoint(self) -> Request[str]:
        """The newest checkpoint."""
        return _text(f"{SANDBOX_TREE}/checkpoint")

    @operation("audit_log_test_consistency_retrieve")
    def sandbox_consistency(self, *, from_: int | None = None, to: int | None = None) -> Request[Consistency]:
        """Prove that one tree begins with another."""
        return _consistency(SANDBOX_TREE, from_, to)

    @operation("audit_log_test_keys_retrieve")
    def sandbox_keys(self) -> Request[str]:
        """The log's verifier keys."""
        return _text(f"{SANDBOX_TREE}/keys")

    @operation("audit_log_test_status_retrieve")
    def sandbox_status(self) -> Request[LogState]:
        """How far the log is sealed, signed and witnessed."""
        return Request("GET", f"{SANDBOX_TREE}/status", answers.data(LogState))

    @operation("audit_log_test_tile_retrieve")
    def sandbox_tile(self, level: int, index: str) -> Request[bytes]:
        """A tile of hashes."""
        return _octets(path(f"{SANDBOX_TREE}/tile/{{}}/", level) + segments(index))

    @operation("audit_log_test_tile_entries_retrieve")
    def sandbox_entries(self, index: str) -> Request[bytes]:
        """A bundle of leaves."""
        return _octets(f"{SANDBOX_TREE}/tile/entries/{segments(index)}")

    @operation("audit_log_tile_retrieve")
    def tile(self, level: int, index: str) -> Request[bytes]:
        """A tile of hashes."""
        return _octets(path(f"{TREE}/tile/{{}}/", level) + segments(index))

    @operation("audit_log_tile_entries_retrieve")
    def entries(self, index: str) -> Request[bytes]:
        """A bundle of leaves."""
        return _octets(f"{TREE}/tile/entries/{segments(index)}")


def _text(address: str) -> Request[str]:
    return Request("GET", address, answers.text, headers={"Accept": "text/plain"})


def _octets(address: str) -> Request[bytes]:
    return Request("GET", address, answers.octets, headers={"Accept": "application/octet-stream"})


def _consistency(tree: str, from_: int | None, to: int | None) -> Request[Consistency]:
    query = given(**{"from": from_}, to=to)
    return Request("GET", f"{tree}/consistency", answers.data(Consistency), query=query)
