"""The worlds that the risk benchmark makes of a stream: one thing changes, the rest stays."""

import json
from typing import Any

import pytest

from bench.risk_model.regimes import Stream
from bench.risk_model.worlds import worlds
from events.risk.evaluation.backtest import Agents, read_stream
from events.risk.scoring.contract import Context

AGENTS = Agents(
    {
        "a@bank": Context(permitted_actions=frozenset({"pay"})),
        "a@work": Context(permitted_actions=frozenset({"send"}), home_domain="acme.example"),
    },
    {"a@bank": "bank", "a@work": "work"},
)
MAIL = {"tool": "send", "targets": ["x@mail.example"], "host": "mail.example"}
PAYMENT = {"tool": "pay", "targets": ["DE01"], "amount_usd": 0.5}
INVITATION = {"tool": "invite", "targets": ["y@mail.example"], "resource": "event:1"}


def row(run: str, action_type: str, details: dict[str, Any], label: str = "benign") -> dict[str, Any]:
    model, suite = run.split("|")[:2]
    return {
        "agent": f"{model}@{suite}",
        "t": "2026-03-02T10:00:00Z",
        "action_type": action_type,
        "details": details,
        "seq": run,
        "label_event": label,
    }


@pytest.fixture(scope="module")
def made() -> dict[str, Stream]:
    rows = [
        row("a|work|u0|inj", "api_call", MAIL, "attack"),
        row("a|bank|u0|inj", "transaction_initiated", PAYMENT, "attack"),
        row("a|work|u1|clean", "data_mutation", INVITATION),
        row("b|work|u1|clean", "api_call", MAIL),
    ]
    return worlds(Stream(read_stream(json.dumps(row).encode() for row in rows), AGENTS))


def told(world: Stream) -> list[Any]:
    return [row.details for row in world.rows]


def types(world: Stream) -> list[str]:
    return [row.action_type for row in world.rows]


def test_open_suites_are_the_first_world_and_stay_as_they_are(made: dict[str, Stream]) -> None:
    assert next(iter(made)) == "as they are"
    assert told(made["as they are"]) == [MAIL, PAYMENT, INVITATION, MAIL]
    assert len(made["bank alone"].rows) == 1
    assert len(made["every other model"].rows) + len(made["the other models"].rows) == 4


def test_attacks_alone_move_home_to_the_web_or_to_a_usual_amount(made: dict[str, Stream]) -> None:
    home, web, usual = (
        told(made[name]) for name in ("attacker at home", "attacker on the web", "attacks of usual amounts")
    )

    assert home[0] == MAIL | {"targets": ["x@acme.example"], "host": "acme.example"}
    assert web[0]["targets"] == [web[0]["host"]] == ["www.collector.example"]
    assert usual[1]["amount_usd"] >= 10
    assert home[1:] == web[1:] == [PAYMENT, INVITATION, MAIL]


def test_facts_are_taken_away(made: dict[str, Stream]) -> None:
    assert told(made["names without hosts"])[0] == {"tool": "send", "targets": ["x"]}
    assert "amount_usd" not in told(made["no amounts"])[1]
    assert "resource" not in told(made["no resources"])[2]
    assert made["no home domain"].agents.contexts["a@work"].home_domain is None
    assert made["no declared scope"].agents.contexts["a@bank"].permitted_actions is None
    assert made["no tenants"].agents.tenants == {}
    assert set(made["one tenant"].agents.tenants.values()) == {"all"}


def test_actions_are_reported_as_another_type(made: dict[str, Stream]) -> None:
    call, pay, mutation = "api_call", "transaction_initiated", "data_mutation"

    assert types(made["as they are"]) == [call, pay, mutation, call]
    assert types(made["mails are mutations"]) == [mutation, pay, mutation, mutation]
    assert types(made["payments are mutations"]) == [call, mutation, mutation, call]
    assert types(made["invitations are calls"]) == [call, pay, call, call]
    assert types(made["mails are payments"]) == [pay, pay, mutation, pay]
