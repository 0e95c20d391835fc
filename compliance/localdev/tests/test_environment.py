"""What the Django processes and `./run env` are given."""

import pytest

from compliance.localdev.console import StepFailed
from compliance.localdev.environment import given_servers, merged

SECRETS = {
    "postgres_password": "ours",
    "postgres_owner_password": "the-owners",
    "postgres_service_password": "the-services",
    "redis_password": "ours-too",
}
LIVE = "postgres://u:theirs@db.example/live"
TEST = "postgres://u:theirs@db.example/test"


def test_given_servers_replace_the_embedded_ones() -> None:
    given = given_servers(
        {"DATABASE_URL": LIVE, "TEST_DATABASE_URL": TEST, "REDIS_URL": "redis://:x@cache.example/0"}, SECRETS
    )

    assert given.databases == (LIVE, TEST)
    assert given.redis == "redis://:x@cache.example/0"


def test_one_database_alone_is_refused() -> None:
    with pytest.raises(StepFailed, match="only one of"):
        given_servers({"DATABASE_URL": LIVE}, SECRETS)


@pytest.mark.parametrize("password", ["ours", "the-owners", "the-services"])
def test_our_own_addresses_in_the_environment_count_as_unset(password: str) -> None:
    own = {
        "DATABASE_URL": f"postgres://service:{password}@127.0.0.1:25000/service_live",
        "TEST_DATABASE_URL": f"postgres://service:{password}@127.0.0.1:25000/service_test",
        "REDIS_URL": "redis://:ours-too@127.0.0.1:25001/0",
    }

    given = given_servers(own, SECRETS)

    assert given.databases is None
    assert given.redis is None


def test_callers_choices_win_over_the_stacks() -> None:
    stack = {"WEB_WORKERS": "2", "DATABASE_URL": LIVE}

    result = merged(stack, {"WEB_WORKERS": "4", "DATABASE_URL": "old", "HOME": "/h"})

    assert result["WEB_WORKERS"] == "4"
    assert result["DATABASE_URL"] == LIVE
    assert result["HOME"] == "/h"


def test_operators_variables_reach_only_who_is_given_them() -> None:
    exported = {"DATABASE_OWNER_URL": LIVE, "TEST_DATABASE_READER_URL": TEST}

    serving = merged({"DATABASE_URL": LIVE}, exported)
    migrating = merged({"DATABASE_URL": LIVE, "DATABASE_OWNER_URL": TEST}, exported)

    assert exported.keys().isdisjoint(serving)
    assert migrating["DATABASE_OWNER_URL"] == TEST
