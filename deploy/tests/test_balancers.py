"""nginx and HAProxy take the configurations, and hand requests on as they promise."""

import http.client
import json
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from select import select
from typing import Protocol
from uuid import NAMESPACE_URL, uuid5

import pytest
import requests
from django.urls import resolve
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from compliance.localdev.ports import free_port
from compliance.serving.http.messages import split_target
from compliance.serving.tests.served import serving
from compliance.tests.waiting import eventually
from deploy.tests.programs import DEPLOY, make_certificate, output_of, program

_ANY = re.compile(".*")
AGENT = "0198f2a4-7c1e-7d52-9d0f-3a1b2c3d4e5f"
AGENTS = [str(uuid5(NAMESPACE_URL, str(number))) for number in range(12)]
# What the service takes for a path of the inside, and spellings that it does not.
INSIDE = [
    *("/health/ready", "/%68ealth/ready", "/health%2fready", "/health%2Fready", "/health/read%79"),
    *("/metrics", "/%6detrics", "/%6Detrics", "/metrics?a=b"),
    *("http://agents.example.org/metrics", "http://agents.example.org/%6detrics"),
]
NEAR_INSIDE = ["//metrics", "//health/ready", "/metrics/", "/metrics#a", "/metrics#%zz", "/%6detrics#a"]
BODIES: dict[str, tuple[str, Callable[[str], str]]] = {
    "agentId": ("/v1/events", lambda agent: json.dumps({"actionType": "api_call", "agentId": agent})),
    "agent_id": ("/v1/events", lambda agent: json.dumps({"agent_id": agent, "payload": {}})),
    "null": ("/v1/events", lambda agent: json.dumps({"agentId": None, "agent_id": agent})),
    "capitals": ("/v1/events", lambda agent: json.dumps({"agentId": agent.upper()})),
    "batch agentId": ("/v1/events/batch", lambda agent: json.dumps({"events": [{"agentId": agent}]})),
    "batch agent_id": ("/v1/events/batch", lambda agent: json.dumps({"events": [{"agent_id": agent}]})),
    "large batch": (
        "/v1/events/batch",
        lambda agent: json.dumps({"events": [{"agentId": agent}, {"details": {"text": "a" * 200_000}}]}),
    ),
    "NDJSON": ("/v1/events/batch", lambda agent: f'{{"agentId": "{agent}"}}\n{{"agentId": "{AGENT}"}}\n'),
}
"""Where an event or a batch goes and what its body is, for each place where the agent's id may stand."""

FLOODS = {
    "no body": (420, b"POST /v1/agents HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"),
    "70 of 100 kB": (420, b"PATCH /v1/agents HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"a" * 70_000),
    "slow reading": (110, b"GET /large HTTP/1.1\r\n\r\n"),
}
"""How many connections one client opens, and what it sends on each: a node takes 400 requests."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tls.crt, tls.key and tls.pem of agents.example.org."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder)
    both = (folder / "tls.crt").read_text() + (folder / "tls.key").read_text()
    (folder / "tls.pem").write_text(both)
    return folder


class Node(Protocol):
    """A server that a balancer asks."""

    @property
    def port(self) -> int: ...


class Balancer:
    """A running balancer: its ports for TLS and plain HTTP, and the roots to check it against."""

    def __init__(self, name: str, roots: Path) -> None:
        self.name = name
        self.tls, self.plain, self.roots = free_port(), free_port(), str(roots)

    def get(self, path: str, **headers: str) -> requests.Response:
        return requests.get(
            f"https://127.0.0.1:{self.tls}{path}",
            headers={"Host": "agents.example.org", **headers},
            timeout=20,
            verify=self.roots,
            allow_redirects=False,
        )

    def ask(
        self, target: str, *, method: str = "GET", body: str = "", source: str = "127.0.0.1", **headers: str
    ) -> tuple[int, str]:
        """Send a request target as it is written; return the status and the body of the answer."""
        context = ssl.create_default_context(cafile=self.roots)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.tls, timeout=20, context=context, source_address=(source, 0)
        )
        with closing(connection):
            connection.request(method, target, body or None, {"Host": "agents.example.org", **headers})
            with connection.getresponse() as answer:
                return answer.status, answer.read().decode()


@contextmanager
def running(name: str, folder: Path, nodes: Sequence[Node]) -> Iterator[Balancer]:
    """The balancer of this name before the nodes, with the certificate of the folder."""
    balancer = Balancer(name, folder / "tls.crt")
    if name == "nginx":
        path = str(nginx_configuration(folder, nodes, balancer))
        output_of(program(name), "-t", "-c", path)
        command = [program(name), "-c", path]
    else:
        path = str(haproxy_configuration(folder, nodes, balancer))
        output_of(program(name), "-c", "-f", path)
        command = [program(name), "-db", "-f", path]
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


def nginx_configuration(folder: Path, nodes: Sequence[Node], balancer: Balancer) -> Path:
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
        f"daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;"
        f"events {{}} http {{ access_log off; {paths} include {folder}/service.conf; }}"
    )
    return folder / "nginx.conf"


def haproxy_configuration(folder: Path, nodes: Sequence[Node], balancer: Balancer) -> Path:
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
    with running(request.param, certificate, nodes) as started:
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


@pytest.mark.parametrize("balancer", ["haproxy"], indirect=True)
@pytest.mark.parametrize("name", BODIES)
def test_agent_named_in_a_body_stays_with_its_node(balancer: Balancer, name: str) -> None:
    path, body_for = BODIES[name]

    by_body = [balancer.ask(path, method="POST", body=body_for(agent)) for agent in AGENTS]

    assert by_body == [balancer.ask(f"/v1/agents/{agent}") for agent in AGENTS]


@pytest.mark.parametrize("balancer", ["haproxy"], indirect=True)
def test_empty_id_in_a_body_counts_as_absent(balancer: Balancer) -> None:
    bodies = [json.dumps({"agentId": "", "agent_id": agent}) for agent in AGENTS]

    by_body = [balancer.ask("/v1/events", method="POST", body=body, **{"X-Agent-Id": ""}) for body in bodies]

    assert by_body == [balancer.ask(f"/v1/agents/{agent}") for agent in AGENTS]


def test_empty_header_counts_as_absent(balancer: Balancer) -> None:
    by_path = [balancer.ask(f"/v1/agents/{agent}") for agent in AGENTS]

    assert by_path == [balancer.ask(f"/v1/agents/{agent}", **{"X-Agent-Id": ""}) for agent in AGENTS]


def test_requests_without_agent_and_key_are_spread_or_kept_by_address(balancer: Balancer) -> None:
    found = {balancer.ask("/v1/events", **{"X-Agent-Id": ""})[1].split()[0] for _ in range(16)}

    # nginx hashes the address, HAProxy takes turns.
    assert len(found) == (1 if balancer.name == "nginx" else 2)


def test_agents_are_spread_over_the_nodes(balancer: Balancer) -> None:
    found = {balancer.get(f"/v1/agents/{number}").text.split()[0] for number in range(64)}

    assert found == {"web-1", "web-2"}


@pytest.mark.parametrize("target", [*INSIDE, *NEAR_INSIDE])
def test_inside_is_not_reachable_from_outside(balancer: Balancer, target: str) -> None:
    status, _ = balancer.ask(target)

    # HAProxy refuses every fragment.
    assert status == (400 if "#" in target and balancer.name == "haproxy" else 404)


@pytest.mark.parametrize("target", INSIDE)
def test_service_takes_these_targets_for_the_inside(target: str) -> None:
    found = split_target(target.encode())

    assert found is not None
    assert resolve(found[1]).route in {"health/ready", "metrics"}


@pytest.mark.parametrize("target", ["/healthy", "/v1/agents/metrics", "/v1/agents?next=/metrics"])
def test_paths_that_only_look_like_the_inside_are_served(balancer: Balancer, target: str) -> None:
    assert balancer.ask(target)[0] == 200


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
    other = requests.get(f"{plain}/v1/agents?a=b", headers=host, timeout=20, allow_redirects=False)

    assert listed.text.split()[1:] == ["127.0.0.1", "http"]
    assert (other.status_code, other.headers["Location"]) == (308, "https://agents.example.org/v1/agents?a=b")


def test_redirect_names_the_service_whatever_host_was_asked_for(balancer: Balancer) -> None:
    answer = requests.get(
        f"http://127.0.0.1:{balancer.plain}/v1/agents",
        headers={"Host": "attacker.example.com"},
        timeout=20,
        allow_redirects=False,
    )

    assert answer.headers["Location"] == "https://agents.example.org/v1/agents"


def test_nginx_of_the_compose_file_differs_by_its_node_alone() -> None:
    ours, composed = (
        [
            line
            for line in (DEPLOY / name).read_text().splitlines()
            if not line.startswith(("#", "    server "))
        ]
        for name in ("nginx/service.conf", "compose/nginx.conf")
    )

    assert ours == composed


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def crowded(request: pytest.FixtureRequest, certificate: Path) -> Iterator[Balancer]:
    """A balancer before two of the service's own HTTP servers, which answer /large with 8 MB."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(serving(largest_body=1024 * 1024)) for _ in range(2)]
        yield stack.enter_context(running(request.param, certificate, nodes))


@pytest.mark.parametrize(("connections", "flood"), FLOODS.values(), ids=FLOODS)
def test_one_address_leaves_places_at_the_nodes_to_others(
    crowded: Balancer, connections: int, flood: bytes
) -> None:
    context = ssl.create_default_context(cafile=crowded.roots)
    head, _, body = flood.partition(b"\r\n")
    request = head + b"\r\nHost: agents.example.org\r\nX-Agent-Id: %s\r\n" % AGENT.encode() + body
    with ExitStack() as stack:
        for _ in range(connections):
            plain = stack.enter_context(socket.socket())
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            # One too many may be answered and closed meanwhile.
            with suppress(OSError):
                plain.connect(("127.0.0.1", crowded.tls))
                one = stack.enter_context(context.wrap_socket(plain, server_hostname="agents.example.org"))
                one.sendall(request)
        # A node that a busy machine delays is away for a moment; without places it would be for ten seconds.
        others = [eventually(lambda: _of_another(crowded) == 200, seconds=8) for _ in range(8)]
        here = crowded.ask("/v1/agents", **{"X-Agent-Id": AGENT})

    assert all(others)
    assert here[0] == 429


def _of_another(balancer: Balancer) -> int:
    status, _ = balancer.ask("/v1/agents", source="127.0.0.2", **{"X-Agent-Id": AGENT})
    return status


@pytest.mark.parametrize("crowded", ["haproxy"], indirect=True)
@pytest.mark.parametrize("port", ["tls", "plain"])
def test_connections_of_one_address_are_bounded(crowded: Balancer, port: str) -> None:
    address = ("127.0.0.1", getattr(crowded, port))
    with ExitStack() as stack:
        opened = []
        for _ in range(260):
            with suppress(ConnectionError):
                opened.append(stack.enter_context(socket.create_connection(address, timeout=20)))

        # Those that the balancer closed can be read from.
        assert eventually(lambda: len(opened) - len(select(opened, [], [], 0)[0]) == 256)
        other = stack.enter_context(socket.create_connection(address, source_address=("127.0.0.2", 0)))
        assert select([other], [], [], 1)[0] == []


def test_all_headers_that_a_balancer_takes_reach_the_service(crowded: Balancer) -> None:
    # http.client sends Host and Accept-Encoding, too.
    status, _ = crowded.ask("/v1/agents", **{f"X-{number}": "a" for number in range(98)})

    assert status == 200
