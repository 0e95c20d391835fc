"""The documented configurations hold the rules of `docs/gateway.md`, as far as their text shows it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from compliance.api.answers import service_header
from delegation.agent_keys.errors import SignatureFault
from delegation.errors import NonceRequired, ProofRejected, RejectionReason
from delegation.standing import NotStanding, Shortcoming
from gateway.deciding import decisions
from gateway.deciding.identity import NAMES
from gateway.deciding.refusals import DECISION, MESSAGE, REASON
from gateway.deciding.requests import KEY, ROUTE

FOLDER = Path(settings.BASE_DIR) / "docs/gateway"
OURS = {service_header(name) for name in (*NAMES, DECISION, MESSAGE, REASON, KEY, ROUTE)}
SERIAL = service_header("Cert-Serial")


def loaded(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def test_nginx_sets_every_header_of_the_identity_itself() -> None:
    text = (FOLDER / "nginx.conf").read_text()
    server, _, rest = text.partition("location = /_authorize")
    set_for_api = {
        line.split()[1] for line in server.splitlines() if line.strip().startswith("proxy_set_header")
    }

    assert set_for_api >= OURS
    for needed in ("proxy_pass_request_body off;", 'Content-Length          "";', "proxy_read_timeout"):
        assert needed in rest


def test_the_guide_replaces_what_nginx_conf_holds() -> None:
    guide, text = (FOLDER.parent / "gateway.md").read_text(), (FOLDER / "nginx.conf").read_text()
    routes = re.findall(r"set \$gateway_route (\S+);", text)

    assert f"for NAME in {' '.join(routes)};" in guide
    for named in ("127.0.0.1:8000", "service.example;", "api.example;"):
        assert f"s|{named}|" in guide
        assert named in text


def test_the_guide_lists_the_reasons_of_refusals() -> None:
    section = (
        (FOLDER.parent / "gateway.md").read_text().partition("Reasons with 401")[2].partition("The order")[0]
    )
    documented = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", section)) - {"permitted_actions"}
    source = "".join(path.read_text() for path in Path(decisions.__file__).parent.glob("*.py"))
    shared = {*NotStanding, *Shortcoming, *RejectionReason, ProofRejected.error, NonceRequired.error}
    shared |= {*SignatureFault}
    own = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', source))

    assert {reason.value for reason in (*NotStanding, *SignatureFault)} <= documented
    assert documented <= shared | own


def test_envoy_removes_what_clients_claim_and_fails_closed() -> None:
    (listener,) = loaded("envoy.yaml")["static_resources"]["listeners"]
    (network,) = listener["filter_chains"][0]["filters"]
    manager = network["typed_config"]
    (early,) = manager["early_header_mutation_extensions"]
    removed = {one["remove"] for one in early["typed_config"]["mutations"]}
    asking = manager["http_filters"][0]["typed_config"]
    service = asking["http_service"]
    taken = service["authorization_response"]["allowed_upstream_headers"]["patterns"]

    assert removed == OURS - {SERIAL}
    assert {one["exact"] for one in taken} == {service_header(name).lower() for name in NAMES}
    assert asking["failure_mode_allow"] is False
    assert (service["path_prefix"], "with_request_body" in asking) == ("/v1/gateway/authorize", False)
    assert service["server_uri"]["timeout"] == "3s"
    clusters = {one["name"] for one in loaded("envoy.yaml")["static_resources"]["clusters"]}
    assert {service["server_uri"]["cluster"], "protected"} == clusters
    assert manager["use_remote_address"] is True
    assert manager["common_http_protocol_options"]["headers_with_underscores_action"] == "REJECT_REQUEST"


def test_traefik_removes_what_clients_claim_before_it_asks() -> None:
    http = loaded("traefik.yml")["http"]
    order = http["routers"]["api"]["middlewares"]
    stripped = http["middlewares"]["strip-claims"]["headers"]["customRequestHeaders"]
    asking = http["middlewares"]["ask-service"]["forwardAuth"]

    assert order == ["strip-claims", "name-gateway", "ask-service", "strip-gateway"]
    assert set(order) == set(http["middlewares"])
    assert (set(stripped), set(stripped.values())) == (OURS - {SERIAL}, {""})
    assert set(asking["authResponseHeaders"]) == {service_header(name) for name in NAMES}
    assert asking["trustForwardHeader"] is False
    assert asking["address"].endswith("/v1/gateway/authorize")
    assert {"Authorization", "DPoP", SERIAL} <= set(asking["authRequestHeaders"])


@pytest.mark.parametrize("name", ["envoy.yaml", "traefik.yml", "nginx.conf"])
def test_no_configuration_holds_a_key(name: str) -> None:
    assert "service_live_" not in (FOLDER / name).read_text()
