"""The audit after the faults: the rows against what was acknowledged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import psycopg

from ops.tests.cluster.lanes import Attempt

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class PromiseAudit:
    """One promise: how often it was put to the test, and what broke it."""

    promise: str
    tested: int
    broken: int
    examples: str = ""

    @property
    def holds(self) -> bool:
        """Whether it was tested at all, and never broken."""
        return self.tested > 0 and self.broken == 0


_COUNTS: Final = (
    "SELECT agent_id::text, count(*) FROM events_behaviorevent"
    " WHERE agent_id = ANY(%s::uuid[]) AND risk_band = 'high' GROUP BY 1",
    "SELECT affected_id, count(*) FROM auditlog_auditentry"
    " WHERE affected_id = ANY(%s) AND event_type = 'agent.suspended' GROUP BY 1",
    "SELECT agent_id::text, count(*) FROM certificates_certificate"
    " WHERE agent_id = ANY(%s::uuid[]) AND status = 'revoked' GROUP BY 1",
)
"""How many high-risk events, suspensions and revoked certificates each agent has."""


class RowAudit:
    """Asks the live database at `url` about the attempts of a run."""

    def __init__(self, url: str, attempts: Sequence[Attempt]) -> None:
        self._url = url
        self._attempts = attempts

    def promises(self, delivered: Sequence[str]) -> list[PromiseAudit]:
        """Return the audit of each promise; `delivered` are the event ids that the receiver took."""
        with psycopg.connect(self._url) as connection:

            def ask(statement: str, *values: Any) -> Rows:
                return connection.execute(statement, list(values)).fetchall()

            return [
                self._stored(ask, "high-risk event", "events_behaviorevent", "id", "id"),
                self._stored(ask, "event once", "events_behaviorevent", "id", "id"),
                self._stored(ask, "register", "agents_agent", "id", "id"),
                self._stored(
                    ask, "certify", "certificates_certificate", "serial_number", "serial_number", cast="text"
                ),
                self._stored(ask, "delegate", "delegation_issuedtoken", "id", "token_id"),
                self._revoked(ask),
                self._once(ask, "register", "name", "SELECT name FROM agents_agent WHERE name = ANY(%s)"),
                self._once(
                    ask, "event once", "session",
                    "SELECT session_id FROM events_behaviorevent WHERE session_id = ANY(%s)",
                ),
                self._once(
                    ask, "certify", "agent",
                    "SELECT agent_id::text FROM certificates_certificate WHERE agent_id::text = ANY(%s)",
                ),
                self._same_answer("certify", "agent", "serial_number"),
                self._same_answer("event once", "session", "id"),
                self._strikes(ask),
                *self._messages(ask, delivered),
                self._numbers(ask),
                self._sequence(ask),
                self._never_stale(),
            ]  # fmt: skip

    def _good(self, kind: str) -> list[dict[str, Any]]:
        return [one.found or {} for one in self._attempts if one.kind == kind and one.is_good]

    def _stored(
        self, ask: Callable[..., Rows], kind: str, table: str, column: str, name: str, *, cast: str = "uuid"
    ) -> PromiseAudit:
        """Every acknowledged thing has its row."""
        wanted = {str(found[name]) for found in self._good(kind) if name in found}
        statement = f"SELECT {column}::text FROM {table} WHERE {column} = ANY(%s::{cast}[])"
        stored = {str(row[0]) for row in ask(statement, sorted(wanted))}
        return _audited(f"acknowledged is stored: {kind}", len(wanted), wanted - stored)

    def _once(self, ask: Callable[..., Rows], kind: str, name: str, statement: str) -> PromiseAudit:
        """What was sent under one key has one row, however often it was sent."""
        sent = [str((one.found or {})[name]) for one in self._attempts if one.kind == kind]
        wanted = set(sent)
        rows = [str(row[0]) for row in ask(statement, sorted(wanted))]
        doubled = {row for row in rows if rows.count(row) > 1}
        repeated = len(sent) - len(wanted)
        return _audited(f"one row for each key: {kind} ({repeated} repeated)", len(wanted), doubled)

    def _same_answer(self, kind: str, name: str, answer: str) -> PromiseAudit:
        """Good answers to one key are the same answer."""
        answers: dict[str, list[str]] = {}
        for found in self._good(kind):
            answers.setdefault(str(found[name]), []).append(str(found.get(answer)))
        repeated = {key: set(given) for key, given in answers.items() if len(given) > 1}
        different = {key for key, given in repeated.items() if len(given) > 1}
        return _audited(f"one answer for each key: {kind}", len(repeated), different)

    def _revoked(self, ask: Callable[..., Rows]) -> PromiseAudit:
        serials = {str(found["serial"]) for found in self._good("revoke")}
        rows = ask(
            "SELECT serial_number FROM certificates_certificate"
            " WHERE serial_number = ANY(%s) AND status = 'revoked'",
            sorted(serials),
        )
        return _audited(
            "acknowledged is stored: revoke", len(serials), serials - {str(row[0]) for row in rows}
        )

    def _strikes(self, ask: Callable[..., Rows]) -> PromiseAudit:
        """Three stored high-risk events stop an agent once; fewer do not, and there is no fourth."""
        agents = sorted(
            {str((one.found or {})["agent"]) for one in self._attempts if one.kind == "high-risk event"}
        )
        statuses: dict[str, str] = dict(
            ask("SELECT id::text, status FROM agents_agent WHERE id = ANY(%s::uuid[])", agents)
        )
        counted: list[dict[str, int]] = [dict(ask(statement, agents)) for statement in _COUNTS]
        found = {
            agent: (status, *(one.get(agent, 0) for one in counted)) for agent, status in statuses.items()
        }
        right = {("suspended", 3, 1, 1), *(("active", number, 0, 0) for number in range(3))}
        wrong = {f"{agent} {seen}" for agent, seen in found.items() if seen not in right}
        stopped = [one for one in found.values() if one[0] == "suspended"]
        return _audited("third high-risk event stops an agent, once", len(stopped), wrong)

    def _messages(self, ask: Callable[..., Rows], delivered: Sequence[str]) -> list[PromiseAudit]:
        """Webhooks: one message for an issued certificate, every message delivered, under its own id."""
        rows = ask(
            """
            SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,serial_number}', count(*)
            FROM webhooks_message WHERE event = 'certificate.issued' GROUP BY 1
            """
        )
        told = {str(row[0]): int(row[1]) for row in rows}
        serials = {str(found["serial_number"]) for found in self._good("certify")}
        due = {
            str(row[0]): str(row[1])
            for row in ask("SELECT message_id::text, status FROM webhooks_delivery WHERE trigger = 'event'")
        }
        taken = set(delivered)
        return [
            _audited(
                "one webhook event for each certificate",
                len(serials),
                {s for s in serials if told.get(s) != 1},
            ),
            _audited("every webhook event delivered", len(due), {one for one in due if one not in taken}),
            _audited("no webhook event but those stored", len(taken), taken - set(due)),
        ]

    def _numbers(self, ask: Callable[..., Rows]) -> PromiseAudit:
        """Numbers of a list grow with time, and none comes twice (RFC 5280 §5.2.3)."""
        rows = ask(
            "SELECT authority_id::text, scope, number FROM certificates_revocationlist"
            " ORDER BY authority_id, scope, this_update, number"
        )
        wrong = {
            f"{later[1]} #{later[2]}"
            for earlier, later in pairwise(rows)
            if earlier[:2] == later[:2] and later[2] <= earlier[2]
        }
        return _audited("CRL numbers grow and do not repeat", len(rows), wrong)

    def _sequence(self, ask: Callable[..., Rows]) -> PromiseAudit:
        """Leaves of the log are numbered from 0 without a gap, and each entry has one."""
        ((leaves, highest, entries, waiting),) = ask(
            "SELECT (SELECT count(*) FROM auditlog_leaf), (SELECT max(index) FROM auditlog_leaf),"
            " (SELECT count(*) FROM auditlog_auditentry), (SELECT count(*) FROM auditlog_pendingentry)"
        )
        wrong = set() if highest == leaves - 1 and leaves + waiting == entries else {f"{leaves} of {entries}"}
        return _audited("audit log has one place for each entry, without gaps", int(leaves), wrong)

    def _never_stale(self) -> PromiseAudit:
        asked = sum(one.kind == "verify a revoked one" and one.is_good for one in self._attempts)
        stale = {str(one.found) for one in self._attempts if one.kind == "stale"}
        return _audited("revoke, then verify through each node: never stale", asked, stale)


def _audited(promise: str, tested: int, broken: set[str]) -> PromiseAudit:
    return PromiseAudit(promise, tested, len(broken), "; ".join(sorted(broken)[:3]))
