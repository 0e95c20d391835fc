import io
import json
import os
import re
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

import compliance
from compliance.settings.declaring import Section, Variable

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


def problem(**changes: str | None) -> str:
    """Load the settings anew in this process; return the error with its traceback, or nothing."""
    ours = [name for name in sys.modules if re.match(r"compliance\.settings(?!\.tests)", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compliance, "settings", compliance.settings)
        for name in ours:
            patch.delitem(sys.modules, name)
        for name, value in changes.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        try:
            import_module("compliance.settings")
        except ImproperlyConfigured as error:
            return "".join(traceback.format_exception(error)).strip()
    return ""


def facts(one: Variable) -> str:
    """What docs/settings.md tells of a variable in brackets."""
    known = [
        one.kind if one.kind in ("list", "networks") else "",
        f"`{one.default}`" if one.default and not one.is_required else "",
        one.unit,
        one.bounds,
        "**required**" if one.is_required else "",
        "**secret**" if one.is_secret else "",
        "" if one.takes_file else "no `_FILE`",
    ]
    return ", ".join(filter(None, known))


def test_page_lists_every_setting_with_its_facts_and_a_sentence() -> None:
    written = (Path(settings.BASE_DIR) / "docs/settings.md").read_text()
    rows = re.findall(r"^- `([A-Z][A-Z0-9_]*)`(?: \((.*)\))?: .*[\w)`]\.$", written, re.MULTILINE)

    assert re.findall("^## (.*)$", written, re.MULTILINE) == [section.title for section in Section.every]
    assert rows == [(one.name, facts(one)) for one in DECLARED]
    assert len(rows) == written.count("\n- ") > 80


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


def test_command_shows_the_value_in_force_of_every_setting() -> None:
    plain, described = io.StringIO(), io.StringIO()

    call_command("settings", stdout=plain)
    call_command("settings", json=True, stdout=described)

    assert [
        line for line in plain.getvalue().splitlines() if line.startswith("  ") and len(line.split()) < 3
    ] == []
    listed = {one["name"]: one["value"] for one in json.loads(described.getvalue())}
    assert listed["KEY_POOL_SIZE"] == str(settings.KEY_POOL_SIZE)


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
        ("DORMANT_SUSPEND_DAYS", "29"),
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
        ("BROKER_URL", "unix://:hunter2@/run/valkey.sock"),
        ("REDIS_URL", " redis://127.0.0.1:6379/0"),
        ("REDIS_URL", "REDIS://127.0.0.1:6379/0"),
        ("REDIS_URL", "redis+cluster://one:7000,two:7001"),
        ("REDIS_URL", "redis://:hunter2@/0"),
        ("REDIS_URL", "redis://127.0.0.1/first"),
        ("REDIS_URL", "redis://127.0.0.1/0?such=none"),
    ],
)
def test_process_with_an_unusable_value_does_not_start(name: str, value: str) -> None:
    found = problem(**{name: value})

    assert f"ImproperlyConfigured: {name} " in found.splitlines()[-1]
    assert "hunter2" not in found


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeffredis://127.0.0.1:6379/0\n", "hunter2\n"])
def test_file_without_an_address_of_redis_stops_the_process(tmp_path: Path, content: str) -> None:
    (tmp_path / "redis-url").write_text(content)

    found = problem(REDIS_URL=None, REDIS_URL_FILE=str(tmp_path / "redis-url"))

    assert "ImproperlyConfigured: REDIS_URL is no address of one Redis server" in found
    assert "hunter2" not in found


@pytest.mark.parametrize(
    "url", ["redis://:p%40ss@valkey.example.org", "rediss://user:x@[::1]:6380/1?ssl_ca_certs=/etc/ca.pem"]
)
def test_address_of_one_server_is_used(url: str) -> None:
    assert problem(REDIS_URL=url, BROKER_URL=None) == ""


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    found = problem(METRICS_TOKEN=None, METRICS_TOKEN_FILE=str(tmp_path / "pipe"))

    assert "METRICS_TOKEN_FILE cannot be read: Not a regular file" in found
