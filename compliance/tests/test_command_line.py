"""`manage.py` as operators see it."""

import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import get_commands

import manage


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)


def test_help_begins_with_the_services_commands() -> None:
    listed = _run("help", "--commands").stdout.split()

    own = [name for name in listed if name not in manage.OF_OTHERS]
    assert listed == [*sorted(own), *sorted(manage.OF_OTHERS)]
    assert {"doctor", "tenant_list", "migrate"} <= set(own)
    assert _run("help").stdout.index("audit_erase") < _run("help").stdout.index("collectstatic")


def test_commands_of_others_that_do_not_serve_the_service_are_unknown() -> None:
    shown = set(_run("help", "--commands").stdout.split())

    assert shown.isdisjoint({"flush", "loaddata", "startproject", "testserver", "runserver"})
    assert all(get_commands()[name].partition(".")[0] in manage.OWN_APPS for name in shown - manage.OF_OTHERS)


@pytest.mark.parametrize("name", ["frob", "flush", "loaddata"])
def test_unknown_command_is_a_usage_error(name: str) -> None:
    done = _run(name)

    assert done.returncode == manage.USAGE
    assert name in done.stderr
