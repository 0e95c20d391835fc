"""JSON values are compared as JSON has them."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from compliance.core.json_values import same_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9
)


@given(value=VALUES)
def test_a_value_is_itself(value: Any) -> None:
    assert same_json(value, value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (True, 1.0),
        ({"a": 1}, {"a": True}),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}),
        ([1], [True]),
        ([1, 2], [1]),
        ({"a": 1}, {"a": 1, "b": None}),
        (None, False),
        ("1", 1),
        ({}, []),
    ],
)
def test_equal_for_python_is_not_the_same(one: Any, other: Any) -> None:
    assert not same_json(one, other)
    assert not same_json(other, one)


def test_members_have_no_order() -> None:
    assert same_json({"a": 1, "b": [True]}, {"b": [True], "a": 1})
