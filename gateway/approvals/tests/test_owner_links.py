"""The owner's one-time link: mailed, shown to whom it was sent, and decided on once, by a form alone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client

from agents import mailing, services
from agents.models import Agent, OwnerMail
from agents.tests.factories import ACTOR
from agents.tests.mail_servers import MailServer, mail_server
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from certificates.tests.factories import suspend_agent
from compliance.core.clock import now
from delegation.models import TokenKey
from gateway.approvals import receipts
from gateway.approvals.errors import NotTheOwner
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import HOUR, decide, make_approval, use

KIM = "kim@example.com"
OWNER = {"owner_name": "Kim Berg", "owner_email": KIM}


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    with mail_server(settings) as running:
        yield running


@pytest.fixture
def owned(server: MailServer, agent: Agent) -> Agent:
    for name, value in OWNER.items():
        setattr(agent, name, value)
    agent.save(update_fields=list(OWNER))
    return agent


def mailed(server: MailServer) -> str:
    """The path of the link in the newest message."""
    assert mailing.send_due(now=now()) >= 1
    found = re.search(rf"{re.escape(configured.BASE_URL)}(/\S+)", server.texts()[-1])
    assert found
    return found[1]


def opened(link: str, client: Client | None = None) -> tuple[Client, str, Any]:
    """A browser, the address that it was led to, and the page."""
    browser = client or Client(enforce_csrf_checks=True)
    led: Any = browser.get(link)
    return browser, led.url, browser.get(led.url)


def press(browser: Client, form: str, act: str = "approve") -> Any:
    token = browser.cookies[configured.CSRF_COOKIE_NAME].value
    return browser.post(form, {"act": act, "csrfmiddlewaretoken": token})


def text_of(page: Any) -> str:
    return " ".join(page.content.decode().split())


def test_owner_approves_without_an_account(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    link = mailed(server)

    browser, form, page = opened(link)
    answer = press(browser, form)

    assert [to for to, _ in server.taken] == [[KIM]]
    for shown in ("pay", owned.name, "Ωmega", "Approve this act", "Deny", KIM):
        assert shown in text_of(page)
    assert "Approved by the owner" in text_of(answer)
    approval.refresh_from_db()
    assert (approval.status, approval.decided_by, approval.decided_by_kind) == (
        "approved",
        f"owner:{KIM}",
        "owner",
    )
    assert use(approval).status == "used"


def test_receipt_answers_and_log_name_the_owner_who_can_be_erased(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    browser, form, _ = opened(mailed(server))
    press(browser, form)
    approval.refresh_from_db()

    entry = AuditEntry.objects.of_type("approval.decided").get(tenant_id=owned.tenant_id)
    assert receipts.read(approval.receipt or "").decided_by == f"owner:{KIM}"
    assert (entry.actor_kind, entry.actor_id) == ("person", f"owner:{KIM}")
    assert KIM not in str(entry.description)


def test_owner_denies(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    browser, form, _ = opened(mailed(server))

    answer = press(browser, form, "deny")

    approval.refresh_from_db()
    assert (approval.status, approval.receipt) == ("denied", None)
    assert "Denied by the owner" in text_of(answer)


@pytest.mark.parametrize("verb", ["get", "head", "options", "put"])
def test_nothing_but_the_form_decides(server: MailServer, owned: Agent, verb: str) -> None:
    approval = make_approval(owned)
    link = mailed(server)
    browser, form, _ = opened(link)

    for address in (link, form, f"{form}?act=approve"):
        getattr(browser, verb)(address)
    forged = browser.post(form, {"act": "approve"})
    other = press(browser, form, "maybe")

    approval.refresh_from_db()
    assert approval.status == "pending"
    assert (forged.status_code, other.status_code) == (403, 200)


def test_a_used_link_says_so_wherever_it_was_forwarded(server: MailServer, owned: Agent) -> None:
    make_approval(owned)
    link = mailed(server)
    (first, form, _), (second, _, _) = opened(link), opened(link)
    press(first, form)

    late = press(second, form, "deny")
    _, _, again = opened(link)

    assert late.status_code == 422
    assert "decided already" in text_of(late)
    assert "Approved by the owner, by this link" in text_of(again)
    assert "used up" in text_of(again)
    assert Approval.objects.get().status == "approved"


def test_a_link_of_what_an_officer_decided_says_so(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    decide(approval, approved=False)

    _, _, page = opened(mailed(server))

    assert "Denied by an officer" in text_of(page)
    assert "Approve this act" not in text_of(page)


def test_an_expired_link_says_so(server: MailServer, owned: Agent) -> None:
    make_approval(owned, details={})
    browser, _, _ = opened(mailed(server))
    late = make_approval(owned, now=now() - 2 * HOUR)
    _, form, page = opened(mailed(server), browser)

    answer = press(browser, form)

    assert "the link has expired" in text_of(page)
    assert (answer.status_code, "The approval has expired" in text_of(answer)) == (422, True)
    late.refresh_from_db()
    assert late.decided_by is None


def test_a_link_of_a_replaced_question_says_so(server: MailServer, owned: Agent) -> None:
    make_approval(owned, risk_band="low")
    link = mailed(server)
    make_approval(owned, risk_band="high")

    _, _, page = opened(link)

    assert "Replaced: the act was asked about at a higher risk." in text_of(page)
    assert "in time" not in text_of(page)


def test_an_owner_is_mailed_once_for_each_type_of_action(server: MailServer, owned: Agent) -> None:
    for action_type in ("api_call", "transaction_initiated") * 3:
        make_approval(owned, action_type=action_type)

    assert OwnerMail.objects.count() == 2


def test_nothing_is_signed_for_who_owned_the_agent_before(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    Agent.objects.filter(id=owned.id).update(owner_email="lee@example.com")
    TokenKey.objects.update(status="retired", retired_at=now())  # to sign would be another error

    with pytest.raises(NotTheOwner):
        decide(approval, actor=Actor.owner(KIM))


def test_who_owned_the_agent_before_sees_and_decides_no_more(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    link = mailed(server)
    browser, form, _ = opened(link)
    services.replace_owner(
        tenant_id=owned.tenant_id, email=KIM, name="Lee", new_email="lee@example.com", actor=ACTOR, now=now()
    )

    answers = [press(browser, form), browser.get(form), browser.get(link)]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert "has another owner now" in text_of(answers[2])
    assert not any("Ωmega" in text_of(answer) for answer in answers)
    approval.refresh_from_db()
    assert approval.status == "pending"


def test_another_letter_case_of_the_address_is_the_same_owner(server: MailServer, owned: Agent) -> None:
    approval = make_approval(owned)
    browser, form, _ = opened(mailed(server))
    Agent.objects.filter(id=owned.id).update(owner_email=KIM.upper())

    answer = press(browser, form)

    assert "Approved by the owner" in text_of(answer)
    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("approved", f"owner:{KIM}")


def test_a_stopped_agent_is_not_let_go_on(server: MailServer, owned: Agent) -> None:
    make_approval(owned)
    browser, form, _ = opened(mailed(server))
    suspend_agent(owned)

    answer = press(browser, form)

    assert answer.status_code == 422
    assert "not active" in text_of(answer)


def test_a_link_opens_its_own_approval_in_its_own_environment(server: MailServer, owned: Agent) -> None:
    make_approval(owned)
    link = mailed(server)
    other = make_approval(owned, details={})
    secret = link.rstrip("/").rpartition("/")[2]

    wrong = [
        link.replace(secret, "x" * len(secret)),
        link.replace(secret, "%00"),
        re.sub(r"[0-9a-f-]{36}", str(other.id), link),
        link.replace("/live/", "/test/"),
    ]

    for address in wrong:
        answer = Client().get(address)
        assert (answer.status_code, "not one of ours" in text_of(answer)) == (404, True)
    form = link.removesuffix(f"{secret}/")
    assert "open the link in the mail again" in text_of(Client().get(form))


def test_two_links_in_one_browser_decide_on_their_own(server: MailServer, owned: Agent) -> None:
    first, second = make_approval(owned), make_approval(owned, details={})
    mailing.send_due(now=now())
    paths = [re.search(r"(/admin/\S+)", text) for text in server.texts()]
    links = {
        str(one.id): path[1] for one in (first, second) for path in paths if path and str(one.id) in path[1]
    }
    browser, form, _ = opened(links[str(first.id)])
    opened(links[str(second.id)], browser)

    press(browser, form, "deny")

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("denied", "pending")


def test_pages_are_kept_by_nobody_and_say_nowhere_whence_one_comes(server: MailServer, owned: Agent) -> None:
    make_approval(owned)
    link = mailed(server)

    led: Any = Client().get(link)
    _, _, page = opened(link)

    for answer in (led, page):
        assert "no-store" in answer.headers["Cache-Control"]
    assert led.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert link.rstrip("/").rpartition("/")[2] not in led.url + page.content.decode()


def test_the_secret_is_stored_hashed(server: MailServer, owned: Agent) -> None:
    make_approval(owned)
    waiting = OwnerMail.objects.get()
    secret = mailed(server).rstrip("/").rpartition("/")[2]

    stored = [*Approval.objects.values(), *AuditEntry.objects.values(), bytes(waiting.sealed)]
    assert secret not in str(stored)


def test_links_are_rate_limited(server: MailServer, owned: Agent, settings: Any) -> None:
    make_approval(owned)
    link = mailed(server)
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "public": 1}

    assert [Client().get(link, REMOTE_ADDR="203.0.113.77").status_code for _ in range(2)] == [302, 429]


def test_nobody_is_asked_without_an_owner_or_a_server(
    server: MailServer, agent: Agent, settings: Any
) -> None:
    assert make_approval(agent).owner_email is None
    settings.EMAIL_HOST = ""
    Agent.objects.filter(id=agent.id).update(**OWNER)

    approval = make_approval(agent, details={})

    assert (approval.owner_email, approval.owner_digest) == (None, None)
    assert not OwnerMail.objects.exists()
