import re
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from compliance.settings.declaring import Section
from deploy.tests.programs import COMPOSE, DEPLOY, PARTS, output_of, program
from ops.unsafe_settings import is_weak_pin

OURS = {name: one for name, one in PARTS.items() if one["image"] == COMPOSE["x-service"]["image"]}


def test_every_part_is_there() -> None:
    assert set(PARTS) - set(OURS) == {"postgres", "valkey", "nginx"}
    assert set(OURS) == {
        *("migrate", "key-host", "web", "worker", "urgent-worker", "beat"),
        *("webhook-sender", "signal-sender"),
    }


@pytest.mark.parametrize("name", OURS)
def test_part_is_confined(name: str) -> None:
    part = OURS[name]

    assert (part["user"], part["read_only"], part["cap_drop"]) == ("10001:10001", True, ["ALL"])
    assert part["security_opt"] == ["no-new-privileges"]


def test_settings_exist_and_their_files_are_given() -> None:
    declared = {one.name: one for section in Section.every for one in section.variables}
    for part in OURS.values():
        for name in part["environment"]:
            setting = name if name in declared else name.removesuffix("_FILE")
            assert setting in declared
            if declared[setting].is_secret:
                assert name == f"{setting}_FILE"
                assert part["environment"][name].removeprefix("/run/secrets/") in part["secrets"]


def test_host_that_the_health_check_asks_for_is_always_allowed() -> None:
    (check,) = (word for word in OURS["web"]["healthcheck"]["test"] if "http://" in word)
    asked = re.search(r"http://([^:/]+)", check)

    # What stands outside of ${…} stays, whatever is given.
    fixed = re.sub(r"\$\{[^}]*\}", "", OURS["web"]["environment"]["ALLOWED_HOSTS"]).split(",")

    assert asked is not None
    assert asked[1] in fixed


def test_only_the_migration_has_the_owners_credentials() -> None:
    assert [name for name, part in PARTS.items() if "database-owner-url" in part.get("secrets", [])] == [
        "migrate"
    ]


def test_only_the_key_host_has_the_pins_and_the_tokens() -> None:
    def knows(part: dict[str, Any]) -> bool:
        named = str([part.get("environment"), part.get("secrets"), part.get("volumes")])
        return "pkcs11-live-pin" in named or "pkcs11-test-pin" in named or "tokens:" in named

    assert [name for name, part in PARTS.items() if knows(part)] == ["key-host"]


def test_names_used_are_declared() -> None:
    for part in PARTS.values():
        assert set(part.get("secrets", [])) <= set(COMPOSE["secrets"])
        assert set(part.get("networks", [])) <= set(COMPOSE["networks"])
        named = {one.split(":")[0] for one in part.get("volumes", []) if not one.startswith(".")}
        assert named <= set(COMPOSE["volumes"])
        assert set(part.get("depends_on", {})) <= set(PARTS)


def test_files_that_are_mounted_exist() -> None:
    mounts = [one for part in PARTS.values() for one in part.get("volumes", [])]
    files = {one.split(":")[0] for one in mounts if one.startswith(".")}

    assert {name for name in files if not (DEPLOY / "compose" / name).exists()} <= {"./tls"}
    assert {"./tls", "./roles.sh", "./softhsm2.conf", "./nginx.conf"} < files
    assert not any("configs" in part for part in PARTS.values())  # podman-compose ignores them


def test_no_part_that_others_wait_for_waits_itself() -> None:
    waits = {name: set(part.get("depends_on", {})) for name, part in PARTS.items()}

    assert not [name for waited in waits.values() for name in waited if waits[name]]
    assert any(waits.values())


def test_nginx_has_the_address_of_web() -> None:
    address = PARTS["web"]["networks"]["inside"]["ipv4_address"]

    assert f"server {address}:8000;" in (DEPLOY / "compose/nginx.conf").read_text()


def test_addresses_given_out_are_neither_fixed_ones_nor_of_broadcasts() -> None:
    (config,) = COMPOSE["networks"]["inside"]["ipam"]["config"]
    subnet, given = ip_network(config["subnet"]), ip_network(config["ip_range"])
    fixed = [ip_address(PARTS[part]["networks"]["inside"]["ipv4_address"]) for part in ("web", "nginx")]

    assert all(address in subnet and address not in given for address in fixed)
    assert subnet.broadcast_address not in given


def test_secrets_are_neither_committed_nor_built_in() -> None:
    for name in (".gitignore", "deploy/container/Containerfile.dockerignore"):
        lines = [line.strip("/") for line in (DEPLOY.parent / name).read_text().splitlines()]
        assert {"deploy/compose/secrets", "deploy/compose/tls"} <= set(lines)


def test_secrets_are_made_once_and_not_shown(tmp_path: Path) -> None:
    program("openssl")
    script = str(DEPLOY / "compose/make-secrets")

    said = output_of(script, str(tmp_path))
    first = {path.name: path.read_text().strip() for path in tmp_path.iterdir()}
    subprocess.run([script, str(tmp_path)], check=True)

    assert said == ""
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert {Path(one["file"]).name for one in COMPOSE["secrets"].values()} <= set(first)
    assert first == {path.name: path.read_text().strip() for path in tmp_path.iterdir()}
    assert len(first["secret-key"]) >= 50
    assert re.fullmatch(r"[\w-]{43}=", first["encryption-keys"])
    assert re.fullmatch(r"[0-9a-f]{48}", first["metrics-token"])
    assert not is_weak_pin(first["pkcs11-live-pin"])


def test_secrets_that_are_made_are_those_that_the_page_gives_to_kubernetes(tmp_path: Path) -> None:
    program("openssl")
    page = (
        (DEPLOY.parent / "docs/deployment.md").read_text().partition("## Kubernetes")[2].partition("\n## ")[0]
    )
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())["secrets"]
    example = yaml.safe_load((DEPLOY / "helm/examples/values.yaml").read_text())["secrets"]

    output_of(str(DEPLOY / "compose/make-secrets"), str(tmp_path))

    made = {path.name for path in tmp_path.iterdir()}
    by_hand = set(example["service"]["files"].values())
    commands = page.replace("\\\n", " ").splitlines()
    for kind in values.values():
        (command,) = (one for one in commands if f"create secret generic {kind['name']} " in one)
        given = re.findall(r"--from-file=(?:([\w-]+)=)?([\w-]+)", command)
        assert {key or file for key, file in given} == set(kind["files"].values())
        assert {file for _, file in given} <= made
    # What the example adds is said beside the commands.
    assert all(f"--from-file={name}" in page for name in by_hand)
