"""Bands, priors and the rules that put an event in the high band."""

import pytest

from agents.risk import band_of
from events.risk.scoring.contract import Context, Event, FinancialScope, normal_actions
from events.risk.scoring.state import AgentState
from events.tests.assessments import Assessment, assess

NOON = 1_700_049_600.0
UNKNOWN = Context()
SCOPE = FinancialScope(
    max_single_trade_usd=10_000,
    daily_limit_usd=25_000,
    permitted_instruments=("BTC-USD", "ETH-USD"),
    permitted_venues=("Kraken",),
    leverage_permitted=True,
    max_leverage_ratio=3,
)


def first(action_type: str, details: object = None, context: Context = UNKNOWN) -> Assessment:
    """The verdict on an agent's very first event."""
    return assess(AgentState(), Event(action_type, NOON, details), context)


def names(assessment: Assessment) -> set[str]:
    return {reason.name for reason in assessment.reasons}


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (0.0, "low"),
        (0.2999, "low"),
        (0.3, "medium"),
        (0.84, "medium"),
        (0.845, "medium"),
        (0.8499, "medium"),
        (0.85, "high"),
        (1.0, "high"),
    ],
)
def test_band_of_score(score: float, band: str) -> None:
    assert band_of(score) == band


@pytest.mark.parametrize(
    ("action_type", "band"),
    [
        ("api_call", "low"),
        ("authentication_attempt", "low"),
        ("authentication_failure", "low"),
        ("data_access", "low"),
        ("data_mutation", "low"),
        ("transaction_initiated", "low"),
        ("transaction_anomaly", "medium"),
        ("unauthorized_access_attempt", "high"),
        ("message_signed", "low"),
        ("message_verification_failed", "low"),
    ],
)
def test_first_plain_event_of_each_type(action_type: str, band: str) -> None:
    assessment = first(action_type)

    assert assessment.band == band
    assert assessment.reasons


@pytest.mark.parametrize(
    ("action_type", "details"),
    [
        ("api_call", {"tool": "get_weather", "url": "https://api.example.com/v1?q=1"}),
        ("data_access", {"tool": "read_file", "resource": "report.csv"}),
        ("data_mutation", {"tool": "update_record", "resource": "customers/7"}),
        ("transaction_initiated", {"tool": "pay", "amount_usd": 100, "recipient": "DE89370400440532013000"}),
    ],
)
def test_first_ordinary_event_within_scope_is_low(action_type: str, details: dict[str, object]) -> None:
    context = Context(permitted_actions=normal_actions([str(details["tool"])]), financial_scope=SCOPE)

    assert first(action_type, details, context).band == "low"


@pytest.mark.parametrize(
    ("action_type", "low"), [("authentication_failure", 3), ("message_verification_failed", 1)]
)
def test_repeated_failures_go_on_being_medium_and_are_never_high_by_themselves(
    action_type: str, low: int
) -> None:
    state, bands = AgentState(), []
    for second in range(30):
        assessment = assess(state, Event(action_type, NOON + second, {}), Context())
        state = assessment.state
        bands.append(assessment.band)

    assert bands[: low + 1] == ["low"] * low + ["medium"]
    assert "high" not in bands
    assert bands[20:].count("medium") >= 6


def test_third_anomaly_within_minutes_is_high() -> None:
    state, bands = AgentState(), []
    for second in (0, 30, 60):
        assessment = assess(state, Event("transaction_anomaly", NOON + second, {}), Context())
        state = assessment.state
        bands.append(assessment.band)

    assert bands == ["medium", "medium", "high"]


@pytest.mark.parametrize(
    "details",
    [
        {"tool": "delete_database"},
        {"action": "delete_database"},
        {"operation": "delete_database"},
        {"toolName": "delete_database"},
        {"tool": {"name": "delete_database"}},
        {"tool": "read_file", "action": "delete_database"},
        {"tools": 1, "tool_calls": [{"function": {"name": "delete_database"}}]},
        {"tool": 7},
        {"tool": "x" * 10_000},
        {"operation": "delete"},
    ],
)
def test_action_outside_declared_scope_is_high(details: dict[str, object]) -> None:
    context = Context(permitted_actions=normal_actions(["read_file", "Send_Email"]))
    state = assess(AgentState(), Event("api_call", NOON, {"tool": "send_email"}), context).state

    assessment = assess(state, Event("api_call", NOON + 60, details), context)

    assert assessment.band == "high"
    assert "off_scope" in names(assessment)


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"tool": "READ_FILE "},
        {"tool": "read_file", "operation": "read"},
        {"tool": "read_file", "action": "api_call"},
        {"tool": "calendar", "action": "create_event"},
        {"method": "DELETE", "args": {"action": "anything", "tool": "anything"}},
        {"tool": None},
    ],
)
def test_action_inside_declared_scope_is_low(details: dict[str, object]) -> None:
    context = Context(permitted_actions=normal_actions(["read_file", "send_email", "calendar.create_event"]))

    assert first("api_call", details, context).band == "low"


@pytest.mark.parametrize(
    ("permitted", "action_type", "details", "band"),
    [
        (None, "api_call", {"tool": "anything"}, "low"),
        ([], "api_call", {"tool": "anything"}, "high"),
        ([], "api_call", {}, "low"),
        (["api_call"], "api_call", {"tool": "anything"}, "low"),
        (["API_CALL", "data_access"], "data_access", {}, "low"),
        (["api_call", "data_access"], "data_mutation", {}, "high"),
        (["api_call", "data_access"], "authentication_failure", {}, "low"),
        (["api_call", "read_file"], "data_mutation", {}, "low"),
        (["read"], "data_mutation", {"operation": "delete"}, "medium"),
    ],
)
def test_scope_of_names_and_types(
    permitted: list[str] | None, action_type: str, details: dict[str, object], band: str
) -> None:
    context = Context(permitted_actions=None if permitted is None else normal_actions(permitted))

    assert first(action_type, details, context).band == band


@pytest.mark.parametrize(
    ("details", "rule"),
    [
        ({"amount_usd": 10_000.01}, "over_single_trade_limit"),
        ({"amount": "$10,001"}, "over_single_trade_limit"),
        ({"amount": -20_000}, "over_single_trade_limit"),
        ({"amount": {"value": 20_000, "currency": "EUR"}}, "over_single_trade_limit"),
        ({"amountCents": 2_000_000}, "over_single_trade_limit"),
        ({"quantity": 3, "price": 60_000}, "over_single_trade_limit"),
        ({"amount": 11, "currency": "BTC"}, "over_single_trade_limit"),
        ({"amount": 1e308}, "over_single_trade_limit"),
        ({"amount": 10**400}, "over_single_trade_limit"),
        ({"trade": {"amount_usd": 26_000}}, "over_daily_limit"),
        ({"amount_usd": 5, "instrument": "DOGE-USD"}, "instrument_not_permitted"),
        ({"amount_usd": 5, "venue": "binance"}, "venue_not_permitted"),
        ({"amount_usd": 5, "leverage": 5}, "over_leverage_limit"),
        ({"amount_usd": 5, "leverage": "10x"}, "over_leverage_limit"),
    ],
)
def test_transaction_beyond_financial_scope_is_high(details: dict[str, object], rule: str) -> None:
    assessment = first("transaction_initiated", details, Context(financial_scope=SCOPE))

    assert assessment.score >= 0.85
    assert rule in names(assessment)


@pytest.mark.parametrize(
    "details",
    [
        {"amount_usd": 10_000},
        {"amount_usd": 5_000, "instrument": "btc/usd", "venue": "KRAKEN", "leverage": 3},
        {"amount_usd": 900, "amount": 100_000, "currency": "JPY"},
        {"amount": float("nan")},
        {"amount": "a lot"},
        {"amount": True},
        {},
    ],
)
def test_transaction_within_financial_scope_is_not_high(details: dict[str, object]) -> None:
    assert first("transaction_initiated", details, Context(financial_scope=SCOPE)).band != "high"


def test_leverage_that_is_not_permitted_is_high() -> None:
    scope = FinancialScope(10_000, 25_000, (), (), leverage_permitted=False)

    assessment = first(
        "transaction_initiated", {"amount_usd": 5, "leverage": 2}, Context(financial_scope=scope)
    )

    assert "leverage_not_permitted" in names(assessment)
    assert assessment.band == "high"


def test_reported_read_of_a_large_amount_is_not_a_trade() -> None:
    assert first("data_access", {"amount_usd": 1e9}, Context(financial_scope=SCOPE)).band == "low"


def test_trade_reported_as_an_api_call_is_held_to_the_limits() -> None:
    details = {"amount_usd": 50_000, "instrument": "BTC-USD", "venue": "Kraken"}

    assert first("api_call", details, Context(financial_scope=SCOPE)).band == "high"


def test_many_small_trades_reach_the_daily_limit_and_the_next_day_starts_anew() -> None:
    context, state, bands = Context(financial_scope=SCOPE), AgentState(), []
    for minute in range(6):
        assessment = assess(
            state, Event("transaction_initiated", NOON + 60 * minute, {"amount_usd": 5_000}), context
        )
        state = assessment.state
        bands.append(assessment.band)

    assert "high" not in bands[:5]
    assert bands[5] == "high"
    assert (
        assess(state, Event("transaction_initiated", NOON + 86_400, {"amount_usd": 5_000}), context).band
        != "high"
    )


def test_more_broken_rules_score_higher() -> None:
    one = first("transaction_initiated", {"amount_usd": 11_000}, Context(financial_scope=SCOPE))
    three = first(
        "transaction_initiated", {"amount_usd": 30_000, "venue": "x"}, Context(financial_scope=SCOPE)
    )

    assert 0.85 <= one.score < three.score <= 1
