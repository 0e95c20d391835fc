"""`/v1/trusted-issuers`."""

from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.tests.client import ApiClient
from delegation.issuers.admin import TrustedIssuerForm
from delegation.issuers.models import TrustedIssuer
from delegation.issuers.serializers import DEFAULTS
from delegation.issuers.services import MOST_ISSUERS
from delegation.issuers.tests.factories import make_issuer
from delegation.issuers.tests.providers import RSA_KEY, public
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

PATH = "/v1/trusted-issuers"
ISSUER = "https://login.example.com"
TRUST: dict[str, Any] = {"issuer": ISSUER, "audiences": ["research-app"]}
KEYS = {"keys": [public(RSA_KEY, "rsa")]}


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


def test_an_issuer_is_trusted(client: ApiClient, tenant: Tenant) -> None:
    answer = client.post(PATH, TRUST)

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert {name: data[name] for name in data if name not in ("id", "created_at", "updated_at")} == {
        **TRUST, "algorithms": ["RS256", "ES256"], "subject_claim": "sub", "required_claims": {},
        "max_age_seconds": 3600, "active": True, "jwks": None, "jwks_uri": None,
    }  # fmt: skip
    entry: Any = AuditEntry.objects.get(event_type="issuer.trusted", affected_id=data["id"])
    assert (entry.tenant_id, entry.metadata["issuer"]) == (tenant.id, TRUST["issuer"])


def test_everything_can_be_said(client: ApiClient) -> None:
    told = {
        **TRUST,
        "audiences": ["a", "b"],
        "jwks": KEYS,
        "algorithms": ["EdDSA", "PS512"],
        "subject_claim": "preferred_username",
        "required_claims": {"groups": ["traders", "desk"]},
        "max_age_seconds": 60,
        "active": False,
    }

    data = client.post(PATH, told).json()["data"]

    assert told.items() <= data.items()
    assert client.get(f"{PATH}/{data['id']}").json()["data"] == data


def test_what_could_verify_nothing_is_refused(client: ApiClient) -> None:
    table: list[tuple[dict[str, Any], str]] = [
        ({"issuer": "https://login.example.com/\u00e4"}, "issuer: "),
        ({"issuer": "https://login example.com"}, "issuer: "),
        ({"issuer": "http://login.example.com"}, "issuer: must use https"),
        ({"issuer": "ftp://login.example.com"}, "issuer: must be an absolute URL"),
        ({"issuer": "https://localhost"}, "issuer: must lead to a public"),
        ({"issuer": "https://a.example?x=1"}, "issuer: must not carry a query"),
        ({"issuer": "https://a.example#x"}, "issuer: must not carry a fragment"),
        ({"issuer": "https://u:p@a.example"}, "issuer: must not carry a user name"),
        ({"jwks_uri": "http://a.example/keys"}, "jwks_uri: must use https"),
        ({"jwks_uri": "https://169.254.169.254/keys"}, "jwks_uri: must lead to a public"),
        ({"jwks_uri": "https://a.example/keys", "jwks": KEYS}, "jwks: give either"),
        ({"jwks": {"keys": ["x"]}}, "jwks: "),
        ({"jwks": {"keys": [{"kty": "oct", "k": "AAAA"}]}}, "jwks: holds no public key"),
        ({"jwks": {"keys": [*KEYS["keys"], {"kty": "oct", "k": "AAAA"}]}}, "jwks: holds a private or secret"),
        (
            {"jwks": {"keys": [*KEYS["keys"], {**KEYS["keys"][0], "d": "AQ"}]}},
            "jwks: holds a private or secret",
        ),
        ({"jwks": {"keys": [{**KEYS["keys"][0], "x": "y" * 65_536}]}}, "jwks: must be at most"),
        ({"algorithms": ["HS256"]}, "algorithms"),
    ]
    for changed, words in table:
        answer = client.post(PATH, {**TRUST, **changed})

        assert answer.status_code == 400, answer.content
        assert answer.json()["error"].startswith(words), answer.content
        assert not TrustedIssuer.objects.exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"issuer": "http://login.example.com"}, "issuer: must use https"),
        ({"issuer": "https://login example.com"}, "issuer: Must be printable"),
        ({"audiences": "\n".join(map(str, range(21)))}, "audiences: "),
    ],
)
def test_the_form_of_the_console_judges_as_the_api(
    tenant: Tenant, changed: dict[str, Any], words: str
) -> None:
    sound = {**TRUST, **DEFAULTS, "tenant": tenant.id, "audiences": "research-app\ndesk"}
    assert TrustedIssuerForm(sound).is_valid()

    assert str(TrustedIssuerForm({**sound, **changed}).non_field_errors()[0]).startswith(words)


def test_this_service_is_no_trusted_issuer(client: ApiClient, settings: Any) -> None:
    settings.TOKEN_ISSUER = "https://login.example.com"

    assert client.post(PATH, TRUST).status_code == 400


def test_with_keys_at_hand_no_address_is_needed(client: ApiClient) -> None:
    assert client.post(PATH, {**TRUST, "issuer": "urn:example:issuer", "jwks": KEYS}).status_code == 201
    assert client.post(
        PATH, {**TRUST, "issuer": "spiffe://a", "jwks_uri": "https://a.example/keys"}
    ).status_code == 201  # fmt: skip


def test_an_issuer_is_trusted_once(client: ApiClient) -> None:
    client.post(PATH, TRUST)

    again = client.post(PATH, TRUST)

    assert (again.status_code, again.json()["error"]) == (409, "The tenant trusts this issuer already")


def test_a_tenant_has_so_many(client: ApiClient, tenant: Tenant) -> None:
    for number in range(MOST_ISSUERS):
        make_issuer(tenant, f"https://{number}.example.com")

    assert client.post(PATH, TRUST).status_code == 409


def test_issuers_are_listed_newest_first(client: ApiClient, tenant: Tenant) -> None:
    rows = [make_issuer(tenant, f"https://{number}.example.com") for number in range(3)]

    listed = client.get(PATH).json()["data"]

    assert [row["id"] for row in listed] == [str(row.id) for row in reversed(rows)]


def test_an_issuer_is_edited(client: ApiClient, tenant: Tenant) -> None:
    row = make_issuer(tenant, TRUST["issuer"])

    answer = client.patch(f"{PATH}/{row.id}", {"audiences": ["x", "x"], "active": False, "jwks": KEYS})

    data = answer.json()["data"]
    assert (data["audiences"], data["active"], data["jwks"]) == (["x"], False, KEYS)
    entry: Any = AuditEntry.objects.get(event_type="issuer.updated")
    assert entry.metadata["changed"] == ["active", "audiences", "jwks"]


def test_keys_and_address_replace_each_other(client: ApiClient, tenant: Tenant) -> None:
    row = make_issuer(tenant, TRUST["issuer"], jwks=KEYS)
    address = "https://login.example.com/keys"

    assert client.patch(f"{PATH}/{row.id}", {"jwks_uri": address}).status_code == 400
    changed = client.patch(f"{PATH}/{row.id}", {"jwks_uri": address, "jwks": None}).json()["data"]
    assert (changed["jwks"], changed["jwks_uri"]) == (None, address)


@pytest.mark.parametrize("changes", [{}, {"issuer": "https://b.example"}, {"id": "x"}])
def test_what_cannot_be_changed_is_refused(
    client: ApiClient, tenant: Tenant, changes: dict[str, Any]
) -> None:
    row = make_issuer(tenant, TRUST["issuer"])

    assert client.patch(f"{PATH}/{row.id}", changes).status_code == 400
    row.refresh_from_db()
    assert row.issuer == TRUST["issuer"]


def test_an_issuer_is_trusted_no_more(client: ApiClient, tenant: Tenant) -> None:
    row = make_issuer(tenant, TRUST["issuer"])

    assert client.delete(f"{PATH}/{row.id}").status_code == 204
    assert client.get(f"{PATH}/{row.id}").status_code == 404
    assert AuditEntry.objects.filter(event_type="issuer.distrusted", affected_id=row.id).exists()
