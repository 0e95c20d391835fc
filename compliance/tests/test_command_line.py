"""`manage.py` as operators see it."""

import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import get_commands

import manage


def _listed() -> list[str]:
    return manage.CommandLine(["manage.py"]).main_help_text(commands_only=True).splitlines()


def test_help_begins_with_the_services_commands() -> None:
    listed = _listed()

    own = [name for name in listed if name not in manage.OF_OTHERS]
    assert listed == [*sorted(own), *sorted(manage.OF_OTHERS)]
    assert {"doctor", "tenant_list", "migrate"} <= set(own)
    explained = manage.CommandLine(["manage.py"]).main_help_text()
    assert explained.index("audit_erase") < explained.index("collectstatic")


def test_commands_of_others_that_do_not_serve_the_service_are_unknown() -> None:
    shown = set(_listed())

    assert shown.isdisjoint({"flush", "loaddata", "startproject", "testserver", "runserver"})
    assert all(get_commands()[name].partition(".")[0] in manage.OWN_APPS for name in shown - manage.OF_OTHERS)


@pytest.mark.parametrize("name", ["flush", "loaddata"])
def test_hidden_command_of_django_is_a_usage_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        manage.CommandLine(["manage.py"]).fetch_command(name)

    assert ended.value.code == manage.USAGE
    assert name in capsys.readouterr().err


def test_unknown_command_is_a_usage_error() -> None:
    command = [sys.executable, "manage.py", "frob"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)

    assert done.returncode == manage.USAGE
    assert "frob" in done.stderr
