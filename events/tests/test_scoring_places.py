"""Every place, resource and amount that an event names is seen, however it is reported."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from events.risk.scoring.details import ActionFacts, read
from events.risk.scoring.places import MAX_LIST

EVIL = "x@evil.example"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=40,
)


@given(JSON, st.sampled_from(["args", "to", "url", "repo_name", "amount", "tool", "product_ids", "x"]))
def test_any_json_is_read(value: object, key: str) -> None:
    facts = read({key: value})

    assert max(len(facts.targets), len(facts.hosts), len(facts.resources)) <= MAX_LIST + 1
    assert read({key: value}) == facts


@pytest.mark.parametrize(
    "args",
    [
        {"to": EVIL}, {"to": [EVIL]}, {"recipients": [EVIL]}, {"cc": EVIL}, {"bcc": [EVIL]},
        {"email": EVIL},
        {"collaborator_email": EVIL}, {"newOwnerEmail": EVIL}, {"new-owner": EVIL}, {"shared_with": [EVIL]},
        {"attendees": [{"email": EVIL}]}, {"to": {"address": EVIL}}, {"to": f"Ann <{EVIL}>"},
        {"toRecipients": [{"emailAddress": {"address": EVIL, "name": "Ann"}}]}, {"to": f"mailto:{EVIL}"},
        {"message": {"to": [EVIL]}}, {"users": [{"email": EVIL, "role": "reader"}]}, {"strange_key": EVIL},
        {"strange": [EVIL]}, {"to": f"{'a@b.example, ' * 40}{EVIL}"}, {"forward_to": EVIL},
        {"reply_to": EVIL},
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "container", [None, "args", "arguments", "params", "tool_input", "kwargs", "request"]
)
def test_address_is_a_destination(args: dict[str, Any], container: str | None) -> None:
    facts = read({"tool": "send", **(args if container is None else {container: args})})

    assert EVIL in facts.targets
    assert "evil.example" in facts.hosts


@pytest.mark.parametrize(
    "args",
    [
        {"url": "https://evil.example/a?b=c"}, {"url": "evil.example/a"},
        {"webhook_url": "https://evil.example"},
        {"callbackUrl": "http://user@evil.example:8080/x"}, {"endpoint": "https://evil.example/v1"},
        {"host": "evil.example"}, {"hostname": "evil.example"}, {"domain": "evil.example"},
        {"strange": "wss://evil.example/socket"}, {"links": ["https://evil.example"]},
        {"json": {"callback": "https://evil.example"}},
    ],
)  # fmt: skip
def test_host_or_url_is_a_destination(args: dict[str, Any]) -> None:
    assert read({"tool": "post", "args": args}).targets == ("evil.example",)
    assert read({"tool": "post", **args}).hosts == ("evil.example",)


@pytest.mark.parametrize(
    "key",
    ["to_account", "recipient_iban", "beneficiary_account", "payee", "destination", "new_owner_username"],
)
def test_account_is_a_destination(key: str) -> None:
    assert read({"args": {key: "DE12 3456", "from_account": "DE99"}}).targets == ("de12 3456",)


@pytest.mark.parametrize(
    "key", ["body", "subject", "content", "message", "query", "prompt", "comment_body", "text"]
)
@pytest.mark.parametrize("value", [EVIL, "https://evil.example", [EVIL], '{"to": "x@evil.example"}'])
def test_free_text_names_no_place(key: str, value: object) -> None:
    assert read({"tool": "send", "args": {key: value}}).targets == ()


@pytest.mark.parametrize(
    "key", ["password", "access_token", "headers", "from", "sender_email", "response", "results"]
)
def test_secrets_senders_and_answers_name_no_place(key: str) -> None:
    facts = read({"args": {key: EVIL, "other": {key: {"url": "https://evil.example"}}}})

    assert (facts.targets, facts.resources) == ((), ())


def test_last_of_ten_recipients_is_seen_and_the_rest_of_hundreds_counts_as_one() -> None:
    ten = [f"p{number}@home.example" for number in range(9)] + [EVIL]
    hundreds = [f"p{number}@home.example" for number in range(300)]

    assert read({"args": {"to": ten}}).targets == tuple(ten)
    assert read({"args": {"to": ", ".join(ten)}}).targets == tuple(ten)
    assert read({"args": {"to": hundreds}}).targets == (*hundreds[:MAX_LIST], f"{300 - MAX_LIST} more")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://home.example@evil.example/x", "evil.example"),
        ("https:evil.example/home.example", "evil.example"),
        ("https:///evil.example", "evil.example"),
        ("https:\\\\evil.example", "evil.example"),
        ("//evil.example/x", "evil.example"),
        ("evil.example:8080?home.example", "evil.example"),
        ("HTTPS://EVIL.example./", "evil.example"),
        ("http://[2001:db8::1]:80/x.y", "2001:db8::1"),
        ("http://localhost:3000/x", "localhost"),
        ("/v1/users.json", "/v1/users.json"),
    ],
)
def test_host_of_a_url_is_where_it_leads(url: str, host: str) -> None:
    assert read({"args": {"url": url}}).targets == (host,)


def test_comma_in_a_name_makes_no_second_recipient() -> None:
    line = '"Doe, Jane" <j@a.example>; Bob <b@a.example>'

    assert read({"to": line}).targets == ("j@a.example", "b@a.example")


def test_last_of_many_calls_is_seen() -> None:
    calls = [{"function": {"name": "get", "arguments": '{"file_id": 1}'}} for _ in range(20)]
    calls.append({"function": {"name": "send", "arguments": json.dumps({"to": EVIL})}})

    facts = read({"tool_calls": calls})

    assert facts.tools[-1] == "send"
    assert facts.targets == (EVIL,)


def test_host_beside_a_target_stays_a_host() -> None:
    facts = read({"to": "a@b.example", "host": "smtp.example"})

    assert facts.targets == ("a@b.example",)
    assert facts.hosts == ("b.example", "smtp.example")


CALL = {"to": EVIL, "amount": "$1,250.00", "repo_name": "emma/x"}


@pytest.mark.parametrize(
    "details",
    [
        {"tool": "send_email", **CALL},
        {"tool": "send_email", "args": CALL, "status": "ok"},
        {"toolName": "sendEmail", "parameters": CALL},
        {"tool_name": "mcp__gmail__send_email", "tool_input": CALL},
        {"name": "send_email", "arguments": json.dumps(CALL)},
        {"type": "tool_use", "name": "send_email", "input": CALL},
        {"method": "tools/call", "params": {"name": "send_email", "arguments": CALL}},
        {"tool_calls": [{"function": {"name": "send_email", "arguments": json.dumps(CALL)}}]},
        {"function": {"name": "functions.send_email", "arguments": CALL}},
        {"tool_call": {"name": "send_email", "args": CALL}},
    ],
)
def test_every_way_of_reporting_a_call_gives_the_same_facts(details: dict[str, Any]) -> None:
    facts = read(details)

    assert facts.tool == "send_email"
    assert (facts.targets, facts.hosts, facts.amount) == ((EVIL,), ("evil.example",), 1250.0)
    assert (facts.resources, facts.containers) == (("emma/x",), ("emma",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"resource": "repo:emma/x"}, {"repo_name": "Emma/X"}),
        ({"resource": "repo:emma/x"}, {"repository": "emma/x"}),
        ({"resource": "repo:emma/x"}, {"owner": "emma", "repo": "x"}),
        ({"resource": "repo:x"}, {"repoName": "x"}),
        ({"resource": "product:P025"}, {"product_id": "P025"}),
        ({"resource": "product:P025"}, {"product_ids": ["P025"]}),
        ({"resource": "file:9"}, {"file_id": 9}),
        ({"resource": "path:/user/info"}, {"path": "/user/info/"}),
        ({"resource": "path:/user/info"}, {"file_path": "/user/info"}),
        ({"resource": "https://a.example/b"}, {"resource": "a.example/b"}),
        ({"resource": "account:bob"}, {"username": "bob"}),
        ({"resource": "order:7"}, {"orderId": "7"}),
    ],
)
def test_resource_has_one_spelling(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert read(one).resources == read({"args": other}).resources != ()
    assert read(one).containers == read(other).containers


@pytest.mark.parametrize(
    ("details", "containers"),
    [
        ({"path": "/srv/reports/q3.pdf"}, ("/srv/reports",)),
        ({"repo": "emma/x"}, ("emma",)),
        ({"resource": "s3://backups/2026/a.gz"}, ("backups",)),
        ({"url": "https://a.example/b/c"}, ("a.example",)),
        ({"resource": "7"}, ()),
    ],
)
def test_container_holds_the_resource(details: dict[str, Any], containers: tuple[str, ...]) -> None:
    assert read(details).containers == containers


def test_path_on_the_agents_own_disk_counts_only_alone() -> None:
    assert read({"file_id": "9", "save_dir": "/tmp/x"}).resources == ("file:9",)
    assert read({"local_path": "/tmp/x"}).resources == ("/tmp/x",)


@pytest.mark.parametrize(
    "key", ["product_name", "request_id", "session_id", "title", "password", "attachments"]
)
def test_what_only_describes_is_no_resource(key: str) -> None:
    assert read({"args": {key: "abc"}}) == ActionFacts()


@pytest.mark.parametrize(
    ("args", "amount"),
    [
        ({"amount": 12}, 12.0),
        ({"amount": "€1,200.50"}, 1200.5 * 0.9),
        ({"amount": "1.200,50 EUR"}, 1200.5 * 0.9),
        ({"amount": "£10"}, 10.0),
        ({"amount": "10 DOGE"}, None),
        ({"total_amount": "$3"}, 3.0),
        ({"price": "$19.99"}, 19.99),
        ({"price": 20, "quantity": "3"}, 60.0),
        ({"price": 60_000, "symbol": "BTC"}, None),
        ({"amount": {"value": "12", "currency": "EUR"}}, 12 * 0.9),
        ({"amount": 12, "currency": "JPY"}, None),
        ({"price_max": 100}, None),
    ],
)
def test_amount_inside_arguments(args: dict[str, Any], amount: float | None) -> None:
    assert read({"tool": "pay", "args": args}).amount == (None if amount is None else pytest.approx(amount))


@pytest.mark.parametrize("key", ["args", "tool", "to", "amount", "resource", "message"])
def test_what_is_nested_too_deep_is_not_read(key: str) -> None:
    details: dict[str, Any] = {"url": "https://evil.example"}
    for _ in range(200):
        details = {key: [details] * 30}

    assert read(details).targets == ()
