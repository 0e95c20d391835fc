"""Numbers, dates and ids are ASCII, wherever a client writes one: Python reads the digits of every script."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest

from compliance.core import identifiers
from compliance.core.clock import now
from compliance.core.identifiers import canonical_id, new_id, parse_id
from compliance.tests import sound_requests
from compliance.tests.client import ApiClient
from compliance.tests.description import description
from compliance.tests.sound_requests import MOMENT, bodies

ARABIC_INDIC = str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")
FULL_WIDTH = str.maketrans("0123456789", "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19")
SCRIPTS = [ARABIC_INDIC, FULL_WIDTH]
known = sound_requests.known
# A query parameter that is neither an enumeration nor text needs an example here.
IN_QUERY = {"limit": "10", "before": MOMENT, "at": MOMENT, "after": MOMENT, "from": "0", "to": "1"}
IN_QUERY |= {"expires_after": MOMENT, "expires_before": MOMENT}
IN_QUERY |= {"period_start": "2026-01-02", "period_end": MOMENT}
IN_QUERY |= {"versionTime": MOMENT, "versionId": "1", "wait": "0"}
# The sandbox's tree is served by the same views as the live one.
SANDBOX_TREE = "/v1/audit-log/test/"
TEXTS = {
    *("event_type", "encoded", "action", "actor_id", "affected_id"),
    *("owner", "orphaned", "dormant", "model_hash", "q"),
}


@dataclass(frozen=True)
class Parameter:
    """A place of an operation where a client writes a number, a date or an id."""

    method: str
    path: str
    name: str
    place: str
    operation: str

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.name}"


def parameters() -> Iterator[Parameter]:
    """All of them, by the service's own description."""
    for path, operations in description()["paths"].items():
        if path.startswith(SANDBOX_TREE):
            continue
        for method, operation in operations.items():
            for found in operation.get("parameters", []):
                if found["in"] != "header" and "enum" not in found["schema"] and found["name"] not in TEXTS:
                    yield Parameter(method, path, found["name"], found["in"], operation["operationId"])


def ask(client: ApiClient, parameter: Parameter, known: dict[str, str], value: str | None = None) -> int:
    """The status with what is known, or with `value` for the parameter."""
    names = dict(known)
    if parameter.path.startswith(("/v1/ca", "/v1/crl")):
        names["serial"] = known["authority"]
    query = {} if parameter.place == "path" else {parameter.name: value or own(parameter, known)}
    if parameter.place == "path" and value is not None:
        names[parameter.name] = value
    if (parameter.path, parameter.name) == ("/v1/events", "after"):
        query["order"] = "asc"
    path = parameter.path.format(**{name: quote(text, safe=":") for name, text in names.items()})
    arguments = [] if parameter.method in ("get", "delete") else [bodies(known).get(parameter.operation)]
    answer = getattr(client, parameter.method)(f"{path}?{urlencode(query)}" if query else path, *arguments)
    return int(answer.status_code)


def own(parameter: Parameter, known: dict[str, str]) -> str:
    if parameter.place == "query":
        return {**known, **IN_QUERY}[parameter.name]
    is_ca = parameter.path.startswith(("/v1/ca", "/v1/crl")) and parameter.name == "serial"
    return known["authority" if is_ca else parameter.name]


@pytest.mark.parametrize("parameter", list(parameters()), ids=str)
def test_no_parameter_takes_digits_of_another_script(
    known: tuple[ApiClient, dict[str, str]], parameter: Parameter
) -> None:
    client, ids = known
    proper = own(parameter, ids)

    foreign = [ask(client, parameter, ids, proper.translate(script)) for script in SCRIPTS]

    assert set(foreign) <= {400, 404}
    assert ask(client, parameter, ids) not in {400, 404}, "its own spelling is not found either"


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    ("path", "body", "member"),
    [
        ("/v1/events", {"action_type": "api_call"}, "agent_id"),
        ("/v1/events", {"action_type": "api_call"}, "agentId"),
        (
            "/v1/events",
            {"action_type": "api_call", "agent_id": "{agent_id}", "chain_id": str(new_id())},
            "chain_id",
        ),
        (
            "/v1/events",
            {"action_type": "api_call", "agent_id": "{agent_id}", "occurred_at": MOMENT},
            "occurred_at",
        ),
        (
            "/v1/reports",
            {"type": "mica", "period_start": "2026-01-01", "period_end": "2026-01-02"},
            "period_start",
        ),
        (
            "/v1/reports",
            {"type": "mica", "period_start": "2026-01-01", "period_end": "2026-01-02"},
            "period_end",
        ),
        ("/v1/webhooks/{webhook_id}/recover", {}, "since"),
        ("/v1/webhooks/{webhook_id}/rotate-secret", {"overlap_seconds": "60"}, "overlap_seconds"),
        (
            "/v1/agents/{agent_id}/delegation",
            {"chain": [{"sub": "a", "type": "human"}], "ttl_seconds": "600"},
            "ttl_seconds",
        ),
    ],
)
def test_no_member_of_a_body_takes_digits_of_another_script(
    known: tuple[ApiClient, dict[str, str]],
    path: str,
    body: dict[str, Any],
    member: str,
    script: dict[int, int],
) -> None:
    client, ids = known
    since = (now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    given = {"agent_id": ids["agent_id"], "agentId": ids["agent_id"], "since": since, **body}[member]
    told = {
        name: value.format(**ids) if isinstance(value, str) else value for name, value in body.items()
    } | {member: given.format(**ids).translate(script)}

    answer = client.post(path.format(**ids), told)

    assert answer.status_code == 400
    assert member.lower().replace("_", "") in answer.json()["error"].lower().replace("_", "")


def test_reports_take_no_ids_of_another_script(known: tuple[ApiClient, dict[str, str]]) -> None:
    client, ids = known
    body = {"type": "mica", "period_start": "2026-01-01", "period_end": "2026-01-02"}

    answer = client.post("/v1/reports", {**body, "agent_ids": [ids["agent_id"].translate(ARABIC_INDIC)]})

    assert answer.status_code == 400


CANONICAL = "0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f"


@pytest.mark.parametrize("text", [CANONICAL, CANONICAL.upper()])
def test_an_id_has_one_form_in_any_case(text: str) -> None:
    assert parse_id(text) == UUID(CANONICAL)
    assert canonical_id(text) == CANONICAL


def test_what_is_too_long_for_an_id_is_not_kept() -> None:
    before = identifiers._canonical_id.cache_info().currsize

    assert canonical_id("x" * 1_000_000) is None
    assert identifiers._canonical_id.cache_info().currsize == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        CANONICAL.translate(ARABIC_INDIC),
        CANONICAL.translate(FULL_WIDTH),
        CANONICAL.replace("-", ""),
        CANONICAL.replace("-", "") + "----",
        "-" + CANONICAL[:8] + CANONICAL[9:],
        "{" + CANONICAL[:-2] + "}",
        "urn:uuid:" + CANONICAL[:27],
        CANONICAL + "\n",
        CANONICAL[:-1] + "\n",
        "0x" + CANONICAL[2:],
        CANONICAL.replace("0193d2a4", "0193_2a4"),
        CANONICAL.replace("0193d2a4", " 193d2a4"),
        CANONICAL.replace("0193d2a4", "+193d2a4"),
        CANONICAL[:-1] + "g",
        None,
        7,
        UUID(CANONICAL),
    ],
)
def test_nothing_else_is_an_id(text: Any) -> None:
    assert parse_id(text) is None
