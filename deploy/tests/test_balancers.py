"""nginx and HAProxy take the configurations, and hand requests on as they promise."""

import http.client
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
import requests
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from compliance.localdev.ports import free_port
from compliance.tests.waiting import eventually
from deploy.tests.programs import DEPLOY, make_certificate, output_of, program

_ANY = re.compile(".*")
AGENT = "0198f2a4-7c1e-7d52-9d0f-3a1b2c3d4e5f"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tls.crt, tls.key and tls.pem of agents.example.org."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder)
    both = (folder / "tls.crt").read_text() + (folder / "tls.key").read_text()
    (folder / "tls.pem").write_text(both)
    return folder


class Balancer:
    """A running balancer: its ports for TLS and plain HTTP, and the roots to check it against."""

    def __init__(self, roots: Path) -> None:
        self.tls, self.plain, self.roots = free_port(), free_port(), str(roots)

    def get(self, path: str, **headers: str) -> requests.Response:
        return requests.get(
            f"https://127.0.0.1:{self.tls}{path}",
            headers={"Host": "agents.example.org", **headers},
            timeout=20,
            verify=self.roots,
            allow_redirects=False,
        )


@contextmanager
def running(balancer: Balancer, *command: str) -> Iterator[Balancer]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: answers(balancer.tls), seconds=60)
        yield balancer
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def nginx_configuration(folder: Path, nodes: list[HTTPServer], balancer: Balancer) -> Path:
    text = (DEPLOY / "nginx/service.conf").read_text().replace("/etc/ssl/service", str(folder))
    for number, node in enumerate(nodes, 1):
        text = text.replace(f"127.0.0.{number}:8000", f"127.0.0.1:{node.port}")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{balancer.plain};")
    text = text.replace("listen 443 ssl http2;", f"listen 127.0.0.1:{balancer.tls} ssl http2;")
    text = "".join(line for line in text.splitlines(keepends=True) if "listen [::]" not in line)
    (folder / "service.conf").write_text(text)
    (folder / "service_proxy.conf").write_text((DEPLOY / "nginx/service_proxy.conf").read_text())
    paths = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
        f"events {{}} http {{ access_log off; {paths} include {folder}/service.conf; }}"
    )
    return folder / "nginx.conf"


def haproxy_configuration(folder: Path, nodes: list[HTTPServer], balancer: Balancer) -> Path:
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text().replace("/etc/ssl/service", str(folder))
    for number, node in enumerate(nodes, 1):
        text = text.replace(f"127.0.0.{number}:8000", f"127.0.0.1:{node.port}")
    text = text.replace("bind :80\n", f"bind 127.0.0.1:{balancer.plain}\n")
    (folder / "haproxy.cfg").write_text(text.replace("bind :443", f"bind 127.0.0.1:{balancer.tls}"))
    return folder / "haproxy.cfg"


def echo(name: str, request: Request) -> Response:
    return Response(
        f"{name} {request.headers.get('X-Forwarded-For')} {request.headers.get('X-Forwarded-Proto')}"
    )


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[HTTPServer]]:
    servers = [HTTPServer(host="127.0.0.1", threaded=True) for _ in range(2)]
    for number, server in enumerate(servers, 1):
        server.expect_request("/health/live").respond_with_data("ok")
        server.expect_request(_ANY).respond_with_handler(partial(echo, f"web-{number}"))
        server.start()
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def balancer(
    request: pytest.FixtureRequest, certificate: Path, nodes: list[HTTPServer]
) -> Iterator[Balancer]:
    found = Balancer(certificate / "tls.crt")
    name = program(request.param)
    if request.param == "nginx":
        path = str(nginx_configuration(certificate, nodes, found))
        output_of(name, "-t", "-c", path)
        command = [name, "-c", path]
    else:
        path = str(haproxy_configuration(certificate, nodes, found))
        output_of(name, "-c", "-f", path)
        command = [name, "-db", "-f", path]
    with running(found, *command) as started:
        yield started


def test_forwarded_headers_are_the_balancers_own(balancer: Balancer) -> None:
    answer = balancer.get("/v1/agents", **{"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"})

    assert answer.text.split()[1:] == ["127.0.0.1", "https"]


def test_gateway_names_the_scheme_of_the_request_it_asks_about(balancer: Balancer) -> None:
    answer = balancer.get("/v1/gateway/authorize", **{"X-Forwarded-Proto": "http"})

    assert answer.text.split()[1:] == ["127.0.0.1", "http"]


def test_agent_stays_with_one_node_whoever_names_it(balancer: Balancer) -> None:
    by_header = {balancer.get("/v1/events", **{"X-Agent-Id": AGENT}).text for _ in range(8)}
    by_path = {balancer.get(f"/v1/agents/{AGENT}").text for _ in range(8)}

    assert by_header == by_path
    assert len(by_header) == 1


def test_agents_are_spread_over_the_nodes(balancer: Balancer) -> None:
    found = {balancer.get(f"/v1/agents/{number}").text.split()[0] for number in range(64)}

    assert found == {"web-1", "web-2"}


@pytest.mark.parametrize("path", ["/health/ready", "/metrics"])
def test_inside_is_not_reachable_from_outside(balancer: Balancer, path: str) -> None:
    assert balancer.get(path).status_code == 404


def test_body_past_the_services_limit_is_refused(balancer: Balancer) -> None:
    context = ssl.create_default_context(cafile=balancer.roots)
    connection = http.client.HTTPSConnection("127.0.0.1", balancer.tls, timeout=20, context=context)
    connection.putrequest("POST", "/v1/events", skip_host=True)
    connection.putheader("Host", "agents.example.org")
    connection.putheader("Content-Length", str(1024 * 1024 + 1))

    # The head alone: an answer while the body is still being sent may end the connection first.
    connection.endheaders()

    with closing(connection), connection.getresponse() as answer:
        assert answer.status == 413
        answer.read()


def test_plain_http_serves_signed_lists_and_redirects_the_rest(balancer: Balancer) -> None:
    plain = f"http://127.0.0.1:{balancer.plain}"
    host = {"Host": "agents.example.org"}

    listed = requests.get(f"{plain}/v1/crl", headers=host, timeout=20, allow_redirects=False)
    other = requests.get(f"{plain}/v1/agents", headers=host, timeout=20, allow_redirects=False)

    assert listed.text.split()[1:] == ["127.0.0.1", "http"]
    assert (other.status_code, other.headers["Location"].split("://")[0]) == (308, "https")
