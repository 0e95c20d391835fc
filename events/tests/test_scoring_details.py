"""Reading details: the same facts, however the object is written."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from events.risk.scoring import details as details_module
from events.risk.scoring.details import FEW_KEYS, ActionFacts, read
from events.risk.scoring.keys import KEYS

TELLING = st.sampled_from(
    [key for keys in KEYS.values() for key in keys] + ["toolName", "tool_name", "amount-usd"]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.text(max_size=6), max_size=10),
    st.dictionaries(TELLING, st.text(max_size=6), max_size=3),
)


@given(st.dictionaries(TELLING, VALUES, max_size=10))
def test_keys_that_tell_nothing_change_nothing(details: dict[str, Any]) -> None:
    padding = {f"note {number}": number for number in range(FEW_KEYS)}

    assert read(details | padding) == read(details)


@pytest.mark.parametrize(
    ("details", "facts"),
    [
        (
            {"toolName": None, "tool_name": "search"},
            ActionFacts(tool="search", tools=("search",), brings_text=True),
        ),
        ({"tool_name": "pay", "toolName": "other"}, ActionFacts(tool="pay", tools=("pay", "other"))),
        (
            {"recipient": "a@b.example", "target": "c@d.example"},
            ActionFacts(targets=("c@d.example", "a@b.example"), hosts=("d.example", "b.example")),
        ),
        (
            {"tool": "  Search ", "amount": "$1,250.00"},
            ActionFacts(tool="search", tools=("search",), amount=1250.0, brings_text=True),
        ),
        ({"k" * 400: 1, "tool": "pay"}, ActionFacts(tool="pay", tools=("pay",))),
    ],
)
def test_facts(details: dict[str, Any], facts: ActionFacts) -> None:
    assert read(details) == facts


@pytest.mark.parametrize(
    ("status", "refused"),
    [(401, True), ("403", True), ([401], True), (401.0, False), (True, False), (200, False), ("ok", False)],
)
def test_status_says_whether_somebody_was_not_let_in(status: object, refused: bool) -> None:
    assert read({"status": status}).refused is refused


@pytest.mark.parametrize("key", ["tool", "to", "host", "resource", "instrument", "venue", "status"])
@pytest.mark.parametrize("text", ["Pay", " <a@b.example> ", "https://x.example/v2", "", "x" * 300])
def test_list_of_one_text_tells_what_the_text_tells(key: str, text: str) -> None:
    assert read({key: [text]}) == read({key: text})


def test_few_plans_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details_module, "MOST_PLANS", 3)
    monkeypatch.setattr(details_module, "_plans", {})

    for number in range(10):
        assert read({"tool": "a", f"note {number}": 1}).tool == "a"

    assert len(details_module._plans) <= 3
