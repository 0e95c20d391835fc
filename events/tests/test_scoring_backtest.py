"""`backtest_risk` and what it is made of."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from events.risk.evaluation.backtest import (
    Agents,
    StreamUnreadable,
    read_agents,
    read_stream,
    report,
    revoked,
    scored,
    taught,
)
from events.risk.scoring.contract import Context
from events.risk.scoring.model import MODEL_VERSION
from events.risk.scoring.state import encode_baseline
from events.risk.scoring.tables import digest

BREACH = {"action_type": "unauthorized_access_attempt", "label_event": "attack", "label_seq": "attack"}


def line(minute: float, **fields: object) -> bytes:
    row = {
        "seq": "run",
        "agent": "clerk",
        "t": f"2026-03-02T10:{int(minute):02d}:{round(minute % 1 * 60):02d}Z",
        "action_type": "api_call",
        "details": {"tool": "send_email", "targets": ["a@acme.example"]},
        "label_event": "benign",
        "label_seq": "benign",
    }
    return json.dumps(row | fields).encode()


def write(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"\n".join(lines) + b"\n\n")
    return path


def backtest(*arguments: object) -> dict[str, object]:
    out = io.StringIO()
    call_command("backtest_risk", *map(str, arguments), "--json", stdout=out)
    figures: dict[str, object] = json.loads(out.getvalue())
    return figures


def test_a_stream_is_replayed_without_the_database(tmp_path: Path) -> None:
    events = write(tmp_path / "events.jsonl", [line(0), line(1, **BREACH), line(2)])

    figures = backtest("--events", events)

    assert figures["model_version"] == MODEL_VERSION
    assert (figures["events"], figures["attacks"], figures["high"]) == (3, 1, 1)
    assert figures["event_roc_auc"] == figures["non_read_roc_auc"] == 1.0
    assert figures["event_recall_at_1_percent_fpr"] == 1.0
    assert figures["benign_share_high"] == 0.0
    assert figures["agents_revoked"] == 0


def test_without_json_each_figure_has_a_line(tmp_path: Path) -> None:
    out = io.StringIO()

    call_command("backtest_risk", "--events", write(tmp_path / "e.jsonl", [line(0)]), stdout=out)

    assert ["events", "1"] in [line.split() for line in out.getvalue().splitlines()]


def test_a_stream_without_labels_says_what_would_have_been_stopped(tmp_path: Path) -> None:
    lines = [line(minute, **BREACH | {"label_event": None, "label_seq": None}) for minute in range(3)]

    figures = backtest("--events", write(tmp_path / "events.jsonl", lines))

    assert figures["agents_revoked"] == 1
    assert (
        figures["agents_revoked_wrongly"] is figures["event_roc_auc"] is figures["benign_share_high"] is None
    )


def test_agents_bring_their_scope(tmp_path: Path) -> None:
    agents = tmp_path / "agents.json"
    agents.write_text(json.dumps({"clerk": {"tenant": "acme", "permitted_actions": ["read_file"]}}))

    events = [line(0, action_type="data_access", details={"tool": "read_file"}), line(1)]

    figures = backtest("--events", write(tmp_path / "events.jsonl", events), "--agents", agents)

    assert figures["high"] == 1


def test_warm_up_is_trusted_and_lies_before_the_events_whatever_its_dates(tmp_path: Path) -> None:
    write(tmp_path / "warm.jsonl", [line(minute) for minute in range(40, 55)])
    write(tmp_path / "events.jsonl", [line(0, action_type="data_access", details={}), line(1)])
    output = tmp_path / "scores.jsonl"

    backtest("--events", tmp_path / "events.jsonl", "--output", output)
    cold = json.loads(output.read_bytes().splitlines()[1])
    backtest("--events", tmp_path / "events.jsonl", "--warmup", tmp_path / "warm.jsonl", "--output", output)
    warm = json.loads(output.read_bytes().splitlines()[1])

    assert warm["score"] < cold["score"]
    assert cold["reasons"][0]["name"] == "read_then_send"
    assert "read_then_send" not in {reason["name"] for reason in warm["reasons"]}


def test_runs_apart_start_from_the_warm_up_each() -> None:
    days = {"02": "one", "03": "one", "05": "one", "06": "two"}
    rows = read_stream(
        line(0, t=f"2026-03-{day}T10:00:00Z", seq=seq, action_type="transaction_initiated")
        for day, seq in days.items()
    )

    together = [one.verdict.score for one in scored(rows)]
    apart = [one.verdict.score for one in scored(rows, runs_apart=True)]

    assert apart[0] == apart[-1] == together[0] > together[-1]
    assert apart[:-1] == together[:-1]


def test_rows_are_replayed_in_the_order_of_their_times() -> None:
    rows = read_stream([line(5), line(3)])

    assert [row.t.minute for row in rows] == [3, 5]


@pytest.mark.parametrize(
    ("minutes", "labels", "right", "wrong"),
    [
        ((0, 5, 14.9), ("benign", "attack", "benign"), ["clerk"], []),
        ((0, 5, 14.9), ("benign", "benign", "benign"), [], ["clerk"]),
        ((0, 5, 15.1), ("attack", "attack", "attack"), [], []),
        ((0, 14, 16, 20), ("benign",) * 4, [], ["clerk"]),
    ],
)
def test_three_highs_within_fifteen_minutes_stop_an_agent(
    minutes: tuple[float, ...], labels: tuple[str, ...], right: list[str], wrong: list[str]
) -> None:
    lines = [
        line(minute, **BREACH | {"label_event": label, "label_seq": "benign"})
        for minute, label in zip(minutes, labels, strict=True)
    ]

    assert revoked(scored(read_stream(lines))) == (right, wrong)


def test_preparation_is_scored_but_not_judged() -> None:
    rows = read_stream([line(0), line(1, stage="prep", label_event="attack"), line(2, **BREACH)])

    figures = report(list(scored(rows)))

    assert (figures["events"], figures["attacks"]) == (3, 1)


def test_a_run_counts_by_its_label_else_by_its_events() -> None:
    labelled = read_stream([line(0, seq="a", label_seq="attack"), line(1, seq="b")])
    unlabelled = read_stream([line(0, seq="a", label_seq=None, label_event="attack"), line(1, seq="b")])

    for rows in (labelled, unlabelled):
        figures = report(list(scored(rows, runs_apart=True)))
        assert (figures["sequences"], figures["sequence_roc_auc"]) == (2, 0.5)


def test_history_is_learned_whatever_it_would_score() -> None:
    read = {"tool": "read_file", "targets": ["a@acme.example"]}
    odd = line(1, action_type="transaction_anomaly", details={"targets": ["new"]})
    history = read_stream([line(0, action_type="data_access", details=read), odd])

    state = taught(history, before=0.0).states["clerk"]

    assert [one.verdict.band for one in scored(history)] == ["low", "medium"]
    assert state.destinations.names == digest("new")
    assert state.last_at <= 0


def test_agents_file_makes_contexts_and_names_tenants() -> None:
    agents = read_agents(
        b'{"a": {"permitted_actions": ["Pay "], "home_domain": "acme.example", "more": 1},'
        b' "b": {"tenant": "acme"}}'
    )

    assert agents.contexts == {"a": Context(frozenset({"pay"}), None, "acme.example"), "b": Context()}
    assert agents.tenants == {"b": "acme"}


COLLEAGUES = Agents({}, {"clerk": "acme", "buyer": "acme", "stranger": "other"})


def test_what_an_agent_did_before_is_less_strange_of_its_tenants_others() -> None:
    (first,) = read_stream([line(0)])
    learned = taught([first], COLLEAGUES, before=first.event.received_at)

    known, unknown = (
        next(scored(read_stream([line(1, agent=agent)]), COLLEAGUES, learned)).verdict.score
        for agent in ("buyer", "stranger")
    )

    assert known < unknown
    assert learned.baselines.keys() == {"acme"}


def test_a_replay_teaches_tenants_what_scores_low_and_leaves_the_warm_up_alone() -> None:
    tenants = Agents({}, COLLEAGUES.tenants | {"seller": "acme"})
    learned = taught(read_stream([line(0)]), tenants, before=0.0)
    before = encode_baseline(learned.baselines["acme"])
    send = {"tool": "send_email", "targets": ["b@acme.example"]}
    rows = read_stream(
        line(0, agent=agent, seq=agent, t=f"2026-03-{day}T10:00:00Z", details=send)
        for agent, day in (("clerk", "02"), ("buyer", "06"), ("seller", "07"))
    )

    together, apart = (
        [one.verdict.score for one in scored(rows, tenants, learned, runs_apart=is_apart)]
        for is_apart in (False, True)
    )

    assert together[2] < apart[2]
    assert encode_baseline(learned.baselines["acme"]) == before


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"agent": "a"}', line(0, action_type="dance"), line(0, t="yesterday"), b"\xff"]
)
def test_an_unreadable_line_is_named(content: bytes) -> None:
    with pytest.raises(StreamUnreadable, match="line 2"):
        read_stream([line(0), content])


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"a": {"permitted_actions": 5}}'])
def test_unreadable_agents_are_named(content: bytes) -> None:
    with pytest.raises(StreamUnreadable, match="agents"):
        read_agents(content)


def test_command_exits_2_for_a_file_it_cannot_read(tmp_path: Path) -> None:
    for events in (tmp_path / "absent.jsonl", write(tmp_path / "bad.jsonl", [b"nonsense"])):
        with pytest.raises(SystemExit) as caught:
            call_command("backtest_risk", "--events", events, stderr=io.StringIO())
        assert caught.value.code == 2


def test_command_exits_2_for_an_empty_stream(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        call_command("backtest_risk", "--events", write(tmp_path / "e.jsonl", []), stderr=io.StringIO())

    assert caught.value.code == 2
