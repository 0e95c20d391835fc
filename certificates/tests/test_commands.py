"""The room's commands."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from certificates.models import CertificateAuthority, PooledKey
from certificates.tests.factories import make_authorities
from compliance import environments
from compliance.environments import Environment


def run(*arguments: str) -> Any:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.usefixtures("authority")
def test_ca_init_is_repeatable() -> None:
    first, second = run("ca_init"), run("ca_init")

    assert first == second
    assert first["serial_number"] == CertificateAuthority.objects.issuing().serial_number


def test_ca_show_lists_the_environments_cas() -> None:
    with environments.use(Environment.TEST):
        make_authorities()

    shown = run("ca_show", "--environment", "test")

    assert {item["role"] for item in shown} == {"root", "issuing"}
    assert run("ca_show") == []


@pytest.mark.usefixtures("authority")
def test_crl_generate_publishes_with_rising_numbers() -> None:
    first, second = run("crl_generate"), run("crl_generate")

    assert len(first) == 2
    assert [item["number"] for item in second] == [item["number"] + 1 for item in first]
    assert run("crl_generate", "--if-due") == []


def test_crl_generate_without_a_ca_prints_nothing() -> None:
    assert run("crl_generate") == []


def test_key_pool_fill_fills_up_to_the_size() -> None:
    assert run("key_pool_fill", "--size", "2") == {"environment": "live", "made": 2, "waiting": 2}
    assert run("key_pool_fill", "--size", "2")["made"] == 0
    assert PooledKey.objects.count() == 2
