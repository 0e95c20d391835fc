"""One small application behind each of the shells."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import setup_testing_defaults

import httpx
import pytest
import uvicorn
from django.http import HttpRequest, JsonResponse
from django.test import RequestFactory, override_settings

from agentid.middleware import Gate
from agentid.middleware.asgi import AsgiGate, Receive, Scope, Send
from agentid.middleware.django import agent_gate
from agentid.middleware.wsgi import Environ, StartResponse, WsgiGate
from agents.models import Agent
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.waiting import eventually
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from tests.served import Service


@dataclass(frozen=True)
class Guarded:
    """A tenant, the key of its gateway, and an agent that may `read`."""

    tenant: Tenant
    gateway_key: str
    agent: Agent

    @property
    def serial(self) -> str:
        return str(Certificate.objects.get(agent_id=self.agent.id).serial_number)


def make_guarded() -> Guarded:
    with environments.use(Environment.LIVE):
        tenant = make_tenant()
        agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read"]})
        return Guarded(tenant, make_key(tenant, ["gateway:authorize"]), agent)


@pytest.fixture(scope="package")
def guarded_by_all(running_service: Service, django_db_blocker: Any) -> Guarded:
    with django_db_blocker.unblock():
        return make_guarded()


@pytest.fixture
def guarded(committed: None, guarded_by_all: Guarded) -> Guarded:
    """The same for all tests, which change nothing of it."""
    return guarded_by_all


@pytest.fixture
def own(committed: None) -> Guarded:
    """A test's own, which it may change."""
    return make_guarded()


@dataclass(frozen=True)
class Asked:
    """An answer, and what the application saw, if it was reached."""

    status: int
    headers: httpx.Headers
    body: Any

    @property
    def seen(self) -> dict[str, str]:
        """The request's headers, as far as they are the service's."""
        return {name: value for name, value in self.body["headers"].items() if "service" in name}


def told(headers: dict[str, str], agent: Any) -> dict[str, Any]:
    return {"headers": headers, "agent": agent and {"agent_id": agent.agent_id, "action": agent.action}}


async def asgi_app(scope: Scope, receive: Receive, send: Send) -> None:
    while scope["type"] == "lifespan":
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
    body = json.dumps(told(headers, scope["agent"])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def wsgi_app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    headers = {name.removeprefix("HTTP_").lower(): str(value) for name, value in environ.items()}
    start_response("200 OK", [])
    return [json.dumps(told(headers, environ["agentid.agent"])).encode()]


def django_view(request: HttpRequest) -> JsonResponse:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return JsonResponse(told(headers, request.agent))  # type: ignore[attr-defined]


def by_asgi(gate: Gate, path: str, headers: dict[str, str]) -> Asked:
    async def ask() -> httpx.Response:
        way = httpx.ASGITransport(AsgiGate(asgi_app, gate))
        async with httpx.AsyncClient(transport=way, base_url="http://api.test") as client:
            found = await client.get(path, headers=octets(headers))
        await gate.aclose()
        return found

    return read(asyncio.run(ask()))


def by_wsgi(gate: Gate, path: str, headers: dict[str, str]) -> Asked:
    target, _, query = path.partition("?")
    environ: Environ = {
        "PATH_INFO": unquote_to_bytes(target).decode("latin-1"),
        "QUERY_STRING": query.encode().decode("latin-1"),
        "HTTP_HOST": "api.test",
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
    }
    setup_testing_defaults(environ)
    began: list[Any] = []
    (body,) = WsgiGate(wsgi_app, gate)(environ, lambda *arguments: began.extend(arguments))
    return Asked(int(began[0].split()[0]), httpx.Headers(began[1]), json.loads(body))


def by_django(gate: Gate, path: str, headers: dict[str, str]) -> Asked:
    with override_settings(AGENTID_GATE=gate):
        request = RequestFactory(SERVER_NAME="api.test").get(path, headers=headers)
        found: Any = agent_gate(django_view)(request)
    return Asked(found.status_code, httpx.Headers(dict(found.items())), json.loads(found.content))


def by_django_in_a_loop(gate: Gate, path: str, headers: dict[str, str]) -> Asked:
    async def view(request: HttpRequest) -> JsonResponse:
        return django_view(request)

    async def ask() -> Any:
        request = RequestFactory(SERVER_NAME="api.test").get(path, headers=headers)
        found = await agent_gate(view)(request)  # type: ignore[misc]
        await gate.aclose()
        return found

    with override_settings(AGENTID_GATE=gate):
        found = asyncio.run(ask())
    return Asked(found.status_code, httpx.Headers(dict(found.items())), json.loads(found.content))


def octets(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def read(answer: httpx.Response) -> Asked:
    return Asked(answer.status_code, answer.headers, answer.json())


@contextmanager
def over_http(app: Any) -> Iterator[str]:
    """The address of a web server with this ASGI application."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = uvicorn.Server(uvicorn.Config(app, log_level="error", loop="asyncio"))
        thread = Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert eventually(lambda: serving.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            serving.should_exit = True
            thread.join()


Ask = Callable[[Gate, str, dict[str, str]], Asked]


MakeGate = Callable[..., Gate]


@pytest.fixture
def make_gate() -> Iterator[MakeGate]:
    """Make gates, which are closed at the end."""
    with ExitStack() as opened:

        def make(*arguments: Any, **more: Any) -> Gate:
            gate = Gate(*arguments, **more)
            opened.callback(gate.close)
            return gate

        yield make


@pytest.fixture(params=[by_asgi, by_wsgi, by_django, by_django_in_a_loop])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask the application behind a gate."""
    return request.param  # type: ignore[no-any-return]
