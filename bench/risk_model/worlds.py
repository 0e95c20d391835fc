"""The public tool calls as other agents might have made them: what a figure owes to these very suites.

Each world changes one thing that the open suites happen to have: hosts, amounts, which type an action is
reported as, who shares a tenant, which models there are. A scorer that was fitted to it falls without it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from bench.risk_model.regimes import Stream, model_of, suite_of
from events.risk.evaluation.backtest import Agents, StreamEvent
from events.risk.scoring.contract import Context

CALL, MUTATION, PAYMENT = "api_call", "data_mutation", "transaction_initiated"
USUAL_AMOUNTS = (10.0, 30.0, 50.0, 100.0)
Changed = Callable[[StreamEvent], StreamEvent]


def worlds(open_stream: Stream) -> dict[str, Stream]:
    """Every world by name, the open suites as they are first."""
    rows, agents = open_stream
    models = sorted({model_of(row) for row in rows})
    homeless = _with_contexts(agents, home_domain=None)

    def told(*changes: Changed) -> list[StreamEvent]:
        return [_all(changes, row) for row in rows]

    return {
        "as they are": Stream(rows, agents),
        **{f"{suite} alone": Stream(_of_suite(rows, suite), agents) for suite in _suites(rows)},
        "every other model": Stream([row for row in rows if models.index(model_of(row)) % 2], agents),
        "the other models": Stream([row for row in rows if not models.index(model_of(row)) % 2], agents),
        "no tenants": Stream(rows, Agents(agents.contexts, {})),
        "one tenant": Stream(rows, Agents(agents.contexts, dict.fromkeys(agents.contexts, "all"))),
        "no home domain": Stream(rows, homeless),
        "names without hosts": Stream(told(_without_hosts), homeless),
        "attacker at home": Stream(told(partial(_at_home, agents)), agents),
        "attacker on the web": Stream(told(_on_the_web), agents),
        "attacks of usual amounts": Stream(told(_of_usual_amount), agents),
        "no amounts": Stream(told(_without_amount), agents),
        "no resources": Stream(told(_without_resource), agents),
        "no declared scope": Stream(rows, _with_contexts(agents, permitted_actions=None)),
        "mails are mutations": Stream(told(_as(CALL, MUTATION)), agents),
        "payments are mutations": Stream(told(_as(PAYMENT, MUTATION), _without_amount), agents),
        "invitations are calls": Stream(told(_aimed_mutation_as_call), agents),
        "mails are payments": Stream(told(_as(CALL, PAYMENT)), agents),
    }


def _all(changes: Iterable[Changed], row: StreamEvent) -> StreamEvent:
    for change in changes:
        row = change(row)
    return row


def _suites(rows: list[StreamEvent]) -> list[str]:
    return sorted({suite_of(row) for row in rows})


def _of_suite(rows: list[StreamEvent], suite: str) -> list[StreamEvent]:
    return [row for row in rows if suite_of(row) == suite]


def _with_contexts(agents: Agents, **changes: Any) -> Agents:
    return Agents(
        {name: msgspec.structs.replace(context, **changes) for name, context in agents.contexts.items()},
        agents.tenants,
    )


def _told(row: StreamEvent, **details: Any) -> StreamEvent:
    """The row with these details in place of its own; None takes one away."""
    stated = row.details if isinstance(row.details, dict) else {}
    return msgspec.structs.replace(
        row, details={key: value for key, value in {**stated, **details}.items() if value is not None}
    )


def _targets(row: StreamEvent) -> list[str]:
    return list(row.details.get("targets", ())) if isinstance(row.details, dict) else []


def _as(before: str, after: str) -> Changed:
    def change(row: StreamEvent) -> StreamEvent:
        return msgspec.structs.replace(row, action_type=after) if row.action_type == before else row

    return change


def _aimed_mutation_as_call(row: StreamEvent) -> StreamEvent:
    return _as(MUTATION, CALL)(row) if _targets(row) else row


def _without_hosts(row: StreamEvent) -> StreamEvent:
    targets = _targets(row)
    return _told(row, targets=[target.partition("@")[0] for target in targets], host=None) if targets else row


def _without_amount(row: StreamEvent) -> StreamEvent:
    return _told(row, amount_usd=None)


def _without_resource(row: StreamEvent) -> StreamEvent:
    return _told(row, resource=None)


def _is_attack_by_mail(row: StreamEvent) -> bool:
    return row.is_attack and any("@" in target for target in _targets(row))


def _at_home(agents: Agents, row: StreamEvent) -> StreamEvent:
    home = agents.contexts.get(row.agent, Context()).home_domain
    if home is None or not _is_attack_by_mail(row):
        return row
    return _told(row, targets=[f"{target.partition('@')[0]}@{home}" for target in _targets(row)], host=home)


def _on_the_web(row: StreamEvent) -> StreamEvent:
    if not _is_attack_by_mail(row):
        return row
    return _told(row, targets=["www.collector.example"], host="www.collector.example")


def _of_usual_amount(row: StreamEvent) -> StreamEvent:
    if not (row.is_attack and isinstance(row.details, dict) and "amount_usd" in row.details):
        return row
    # By the run's name, so that it is the same each time
    return _told(row, amount_usd=USUAL_AMOUNTS[sum(row.run.encode()) % len(USUAL_AMOUNTS)])
