"""The checks of what the service connects to: a pooler's sessions, and Citus."""

from typing import Any

from ops.checks import check_distribution, check_session_defaults


def test_sessions_that_lack_the_services_settings_are_told(settings: Any) -> None:
    settings.DATABASES_DIRECT = {"default": {}}

    assert check_session_defaults() == []

    settings.DATABASE_SESSION = {**settings.DATABASE_SESSION, "lock_timeout": "9"}
    (found,) = check_session_defaults()
    assert found.id == "wiring.E006"
    assert "lock_timeout" in found.msg
    assert "SET lock_timeout = '9'" in (found.hint or "")


def test_without_a_pooler_sessions_are_set_by_the_service(settings: Any) -> None:
    settings.DATABASES_DIRECT = {}
    settings.DATABASE_SESSION = {**settings.DATABASE_SESSION, "lock_timeout": "9"}

    assert check_session_defaults() == []


def test_setting_says_whether_tables_are_distributed(db: None, settings: Any) -> None:
    assert check_distribution() == []

    settings.DATABASE_CITUS = not settings.DATABASE_CITUS

    assert [found.id for found in check_distribution()] == ["wiring.E008", "wiring.E008"]
