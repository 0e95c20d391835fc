import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from compliance.settings.declaring import Section
from compliance.settings.page import page

DECLARED = [one for section in Section.every for one in section.variables]


def load(**changes: str | None) -> subprocess.CompletedProcess[str]:
    """Load the settings in a process of their own, with variables changed or (None) taken away."""
    environment = {**os.environ, **{name: value for name, value in changes.items() if value is not None}}
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", "import compliance.settings as s; print(s.DATABASES['default']['NAME'])"],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_page_lists_every_setting() -> None:
    """Remedy: ./run manage settings --page > docs/settings.md."""
    written = (Path(settings.BASE_DIR) / "docs/settings.md").read_text()

    assert written == page(Section.every)
    assert len(DECLARED) > 90


@pytest.mark.parametrize("variable", DECLARED, ids=lambda one: one.name)
def test_setting_is_described(variable) -> None:
    assert re.fullmatch(r"[A-Z][A-Z0-9_]*", variable.name)
    assert re.search(r"[\w)`]\.$", variable.sentence)


def test_secrets_are_marked() -> None:
    hidden = re.compile(
        r"SECRET_KEY|ENCRYPTION|PASSWORD|_PIN$|SECRET$|^(TEST_)?DATABASE_(OWNER_|DIRECT_)?URL$|^(REDIS|BROKER)_URL$|^METRICS_TOKEN$"
    )

    assert [one.name for one in DECLARED if one.is_secret] == [
        one.name for one in DECLARED if hidden.search(one.name)
    ]


def test_command_shows_no_secret() -> None:
    plain, described = io.StringIO(), io.StringIO()

    call_command("settings", stdout=plain)
    call_command("settings", json=True, stdout=described)

    listed = {one["name"]: one for one in json.loads(described.getvalue())}
    assert listed["SECRET_KEY"]["value"] == "set"
    assert re.search(r"^  SECRET_KEY +environment +\(set\)$", plain.getvalue(), re.MULTILINE)
    assert set(listed) == {one.name for one in DECLARED}
    for out in (plain, described):
        assert settings.SECRET_KEY not in out.getvalue()
        assert settings.DATABASES["default"]["PASSWORD"] not in out.getvalue()


def test_settings_load_from_files(tmp_path: Path) -> None:
    (tmp_path / "database-url").write_text("postgres://one:two@db.example.org/three\n")

    loaded = load(DATABASE_URL=None, DATABASE_URL_FILE=str(tmp_path / "database-url"))

    assert (loaded.stdout, loaded.returncode) == ("three\n", 0)


def test_everything_wrong_is_named_and_no_value_shown() -> None:
    loaded = load(
        DATABASE_URL="postgres://one:hunter2@db.example.org:none/three",
        TEST_DATABASE_URL="hunter2",
        SECRET_KEY=None,
        WEB_THREADS="hunter2",
    )

    assert loaded.returncode != 0
    assert (
        loaded.stderr.strip()
        .splitlines()[-1]
        .endswith(
            "ImproperlyConfigured: SECRET_KEY is not set; DATABASE_URL is no URL of a database; "
            "TEST_DATABASE_URL is no URL of a database; WEB_THREADS is no whole number"
        )
    )
    assert "hunter2" not in loaded.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CERTIFICATE_VALIDITY_DAYS", "9999"),
        ("HIGH_RISK_CERTIFICATE_VALIDITY_DAYS", "0"),
        ("HIGH_RISK_STRIKES", "0"),
        ("HIGH_RISK_WINDOW_MINUTES", "-1"),
        ("RATE_LIMIT_VERIFY", "-5"),
        ("RATE_LIMIT_SIGN_IN_ENTRIES", "-5"),
        ("TRUSTED_PROXIES", "nginx"),
        ("DATABASE_URL", "postgres://one:hunter2@db.example.org/three?isolation_level=4"),
        ("TEST_DATABASE_DIRECT_URL", "postgres://one:hunter2@db.example.org/three?pool=true"),
        ("REDIS_URL", ""),
        ("REDIS_URL", "valkey://127.0.0.1:6379/0"),
        ("BROKER_URL", ""),
        ("BROKER_URL", "sentinel://127.0.0.1:26379"),
        ("BROKER_URL", "redis+cluster://:hunter2@127.0.0.1:6379"),
    ],
)
def test_process_with_an_unusable_value_does_not_start(name: str, value: str) -> None:
    loaded = load(**{name: value})

    assert loaded.returncode != 0
    assert f"ImproperlyConfigured: {name} " in loaded.stderr.strip().splitlines()[-1]
    assert "hunter2" not in loaded.stderr


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeffredis://127.0.0.1:6379/0\n", "hunter2\n"])
def test_file_without_an_address_of_redis_stops_the_process(tmp_path: Path, content: str) -> None:
    (tmp_path / "redis-url").write_text(content)

    loaded = load(REDIS_URL=None, REDIS_URL_FILE=str(tmp_path / "redis-url"))

    assert "ImproperlyConfigured: REDIS_URL is no address of Redis" in loaded.stderr
    assert "hunter2" not in loaded.stderr


@pytest.mark.parametrize("url", ["redis+cluster://127.0.0.1:7000", "unix:///run/valkey.sock"])
def test_broker_is_asked_for_where_celery_cannot_use_redis_url(url: str) -> None:
    alone = load(REDIS_URL=url, BROKER_URL=None)
    beside = load(REDIS_URL=url, BROKER_URL="redis://127.0.0.1:6379/0")

    assert "ImproperlyConfigured: BROKER_URL is not set, and Celery cannot use REDIS_URL" in alone.stderr
    assert beside.returncode == 0


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    loaded = load(METRICS_TOKEN=None, METRICS_TOKEN_FILE=str(tmp_path / "pipe"))

    assert "METRICS_TOKEN_FILE cannot be read: Not a regular file" in loaded.stderr
