"""The chart refuses values that are unknown, unsafe or in the wrong place."""

import json
from typing import Any

import jsonschema_rs
import pytest

from compliance.settings.declaring import Section
from deploy.tests.charts import CHART, EXAMPLE, run


def refusal(*setting: str) -> str:
    """Return what Helm says of the example's values with this setting, which it must refuse."""
    done = run("template", "agents", str(CHART), "--values", str(EXAMPLE), *setting)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("settings.SECRET_KEY=x", "invalid propertyName 'SECRET_KEY'"),
        ("settings.BASE_URL=x", "invalid propertyName 'BASE_URL'"),
        ("settings.lower=x", "invalid propertyName 'lower'"),
        ("web.replica=3", "at '/web'"),
        ("baseUrl=http://agents.example.org", "at '/baseUrl'"),
        ("baseUrl=https://", "at '/baseUrl'"),
        ("baseUrl=https:///v1", "at '/baseUrl'"),
        ("hosts={.org}", "at '/hosts/0'"),
        ("hosts={a.example.org\\,*}", "at '/hosts/0'"),
        ("trustedProxies={0.0.0.0/0}", "at '/trustedProxies/0'"),
        ("trustedProxies={0.0.0.0/0 }", "at '/trustedProxies/0'"),
        ("trustedProxies={0.0.0.0/1,128.0.0.0/1}", "at '/trustedProxies/1'"),
        ("trustedProxies={::/0}", "at '/trustedProxies/0'"),
        ("trustedProxies={::/6}", "at '/trustedProxies/0'"),
        ("settings.DEBUG=true", "at '/settings/DEBUG'"),
        ("settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES=yes", "at '/settings/WEBHOOK_ALLOW_PRIVATE_ADDRESSES'"),
        ("settings.WEBHOOK_ALLOW_HTTP=1", "at '/settings/WEBHOOK_ALLOW_HTTP'"),
        ("settings.TRUSTED_ISSUER_ALLOW_HTTP=on", "at '/settings/TRUSTED_ISSUER_ALLOW_HTTP'"),
        (
            "settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES=y",
            "at '/settings/TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES'",
        ),
        ("settings.SECOND_FACTOR=nobody", "at '/settings/SECOND_FACTOR'"),
        ("settings.DEBUG_FILE=/tmp/debug", "invalid propertyName 'DEBUG_FILE'"),
        ("hsm.settings.DEBUG=true", "at '/hsm/settings/DEBUG'"),
        ("hsm.environment.DEBUG=true", "at '/hsm/environment/DEBUG'"),
        ("hsm.environment.PKCS11_LIVE_PIN=1234", "invalid propertyName 'PKCS11_LIVE_PIN'"),
        ("hsm.environment.VENDOR_PIN=1234", "invalid propertyName 'VENDOR_PIN'"),
        ("secrets.service.files.PKCS11_LIVE_PIN=pin", "invalid propertyName 'PKCS11_LIVE_PIN'"),
        ("secrets.service.files.DATABASE_OWNER_URL=url", "invalid propertyName 'DATABASE_OWNER_URL'"),
        ("secrets.service.files.DEBUG=debug", "invalid propertyName 'DEBUG'"),
        ("secrets.hsm.files.DATABASE_OWNER_URL=url", "invalid propertyName 'DATABASE_OWNER_URL'"),
    ],
)
def test_unsafe_or_unknown_values_are_refused(setting: str, said: str) -> None:
    assert said in refusal("--set-string", setting)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("settings.WEB_THREADS=8", "at '/settings/WEB_THREADS'"),
        ("settings.DEBUG=true", "at '/settings/DEBUG'"),
        ("network.database.to=null", "at '/network/database'"),
        ("network.ingress.from=null", "at '/network/ingress'"),
        ("secrets.service.files.SECRET_KEY=null", "at '/secrets/service/files'"),
        ("web.resources.limits=null", "at '/web/resources'"),
    ],
)
def test_values_of_the_wrong_type_or_none_are_refused(setting: str, said: str) -> None:
    assert said in refusal("--set", setting)


@pytest.mark.parametrize(
    "setting",
    [
        "settings.DEBUG=false",
        "settings.SECOND_FACTOR=everyone",
        "settings.WEBHOOK_CA_FILE=/run/secrets/service/ca.pem",
        "secrets.service.files.WEBHOOK_CA=ca.pem",
        "hsm.environment.VENDOR_CONF_FILE=/etc/vendor/client.conf",
        "trustedProxies={10.0.0.0/8,fc00::/7,2001:db8::7,192.0.2.1}",
        "baseUrl=https://agents.example.org:8443/identity",
    ],
)
def test_safe_values_are_taken(setting: str) -> None:
    done = run("template", "agents", str(CHART), "--values", str(EXAMPLE), "--set-string", setting)

    assert done.returncode == 0, done.stderr


def test_network_hsm_without_ports_is_refused() -> None:
    # A rule with an empty list of ports would let all through.
    assert "at '/network/hsm/ports'" in refusal("--set-json", "network.hsm.ports=[]")


def test_installation_that_says_nothing_is_refused() -> None:
    done = run("template", "agents", str(CHART))

    assert done.returncode != 0
    for value in ("/image/repository", "/baseUrl", "/trustedProxies", "/hsm/module", "/network/database/to"):
        assert f"at '{value}'" in done.stderr


def test_schema_refuses_every_secret_as_a_plain_setting() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    refused = set(schema["definitions"]["name"]["not"]["enum"])
    declared = {one.name: one for section in Section.every for one in section.variables}

    assert refused <= set(declared)
    assert {name for name, one in declared.items() if one.is_secret} <= refused
    # What the templates say already.
    plain = {
        "ALLOWED_HOSTS",
        "AUDIT_VERIFIED_FILE",
        "BASE_URL",
        "EVENT_ARCHIVE_DIR",
        "METRICS_DIR",
        "METRICS_LISTEN",
    }
    plain |= {"PKCS11_HOSTS", "PKCS11_HOST_FOLDER", "PKCS11_MODULE", "TRUSTED_PROXIES"}
    assert {name for name in refused if not declared[name].is_secret} == plain


def refuses(place: str, name: str, value: str) -> bool:
    """Tell whether the schema refuses a value under a name, in a map of values such as `hsm.environment`."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    found: dict[str, Any] = {}
    inner = found
    for key in place.split("."):
        inner = inner.setdefault(key, {})
    inner[name] = value
    where = {"type": "object", "properties": schema["properties"], "definitions": schema["definitions"]}
    faults = jsonschema_rs.Draft7Validator(where).iter_errors(found)
    return any(f'"{name}"' in fault.message or name in fault.instance_path for fault in faults)


def test_each_secret_is_mounted_from_one_kind_of_secret_and_never_in_the_clear() -> None:
    secrets = {one.name for section in Section.every for one in section.variables if one.is_secret}
    of_the_hsm = {name for name in secrets if name.startswith("PKCS11_")}
    of_the_owner = {name for name in secrets if name.endswith("_OWNER_URL")}
    kinds = {"service": secrets - of_the_hsm - of_the_owner, "hsm": of_the_hsm, "owner": of_the_owner}

    for kind, names in kinds.items():
        assert {one for one in secrets if not refuses(f"secrets.{kind}.files", one, "file")} == names
    for place in ("settings", "hsm.settings", "hsm.environment"):
        for name in secrets:
            assert refuses(place, name, "value")
            assert refuses(place, f"{name}_FILE", "/file")


def test_safe_switches_are_those_that_the_check_refuses() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    flags = {one.name for section in Section.every for one in section.variables if "_ALLOW_" in one.name}

    assert set(schema["definitions"]["safe"]["properties"]) == flags | {*("DEBUG", "SECOND_FACTOR")}
