"""The rule of standing says the same in Python and in SQL."""

from datetime import timedelta
from itertools import product

import pytest

from agents.models import AgentStatus
from certificates.models import CertificateStatus, status_by_clock
from compliance.core.clock import now
from compliance.stores import sql
from delegation.standing_rule import IS_STOPPED, NotStanding, delegator_fault, revocation_fault

ASKED = f"""
SELECT place, {IS_STOPPED.format(now="$7")} IS TRUE
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[])
    AS asked (place, agent_status, latest_serial, latest_status, latest_end, named)
CROSS JOIN LATERAL (SELECT 1 AS id, agent_status AS status) AS agent
CROSS JOIN LATERAL (
    SELECT latest_serial AS serial_number, latest_status AS status, latest_end AS expires_at
) AS latest
CROSS JOIN LATERAL (SELECT named AS serial) AS one
ORDER BY place
"""  # noqa: S608  (the rule is text of ours)


@pytest.mark.django_db
def test_both_languages_find_a_fault_in_the_same_agents() -> None:
    at = now()
    ends = (at - timedelta(seconds=1), at, at + timedelta(seconds=1))
    certificates = [(None, None, None), *product(["aa"], CertificateStatus, ends)]
    cases = [
        (status, *latest, named)
        for status, latest, named in product(AgentStatus, certificates, [None, "aa", "bb"])
    ]
    in_python = [
        delegator_fault(
            agent_status=status,
            serial_number=serial,
            certificate_status=status_by_clock(state, end, at) if state and end else None,
            named_serial=named,
        )
        for status, serial, state, end, named in cases
    ]

    columns = [list(column) for column in zip(*cases, strict=True)]
    found = sql.asked(ASKED, [list(range(len(cases))), *columns, at])

    assert [is_stopped for _, is_stopped in found] == [fault is not None for fault in in_python]
    assert {None, *in_python} == {None, *NotStanding} - {
        NotStanding.UNKNOWN,
        NotStanding.EXPIRED,
        NotStanding.REVOKED,
        NotStanding.PARENT_REVOKED,
    }


@pytest.mark.parametrize(
    ("revoked", "fault"),
    [
        ([], None),
        ([False, False], None),
        ([False, True], NotStanding.REVOKED),
        ([True, True], NotStanding.REVOKED),
        ([True, False], NotStanding.PARENT_REVOKED),
    ],
)
def test_a_revocation_is_the_tokens_own_or_an_ancestors(
    revoked: list[bool], fault: NotStanding | None
) -> None:
    assert revocation_fault(revoked) is fault
