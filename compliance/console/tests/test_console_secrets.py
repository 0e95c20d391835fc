"""A secret is shown once, in an answer that nothing keeps."""

import pytest
from django.urls import reverse

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_operator
from tenancy.models import ApiKey
from tenancy.tests.factories import make_tenant
from webhooks.models import Webhook
from webhooks.tests.factories import make_webhook

ADD = reverse("admin:tenancy_apikey_add")


@pytest.mark.parametrize("environment", list(Environment))
def test_secret_is_in_the_answer_alone(environment: Environment) -> None:
    client = console_of(make_operator(), environment)
    form = {"tenant": make_tenant("Acme").id, "name": "ci", "scopes": ["agents:read"]}

    made = client.post(ADD, form)

    secret = made.context["secret"]
    with environments.use(environment):
        row = ApiKey.objects.get(name="ci")
    later = client.get(reverse("admin:tenancy_apikey_change", args=[row.pk])).content.decode()
    assert (made.status_code, made.content.decode().count(secret)) == (200, 1)
    assert "no-store" in made.headers["Cache-Control"]
    assert secret not in later
    assert secret not in str(dict(client.session.items()))


@pytest.mark.parametrize("environment", list(Environment))
def test_reloading_the_answer_makes_no_second_secret(environment: Environment) -> None:
    client = console_of(make_operator(), environment)
    form = {"tenant": make_tenant("Acme").id, "name": "ci", "scopes": ["agents:read"]}
    tokens = [str(client.get(ADD).context["csrf_token"]) for _ in range(2)]

    first, again = (client.post(ADD, {**form, "csrfmiddlewaretoken": tokens[0]}) for _ in range(2))
    told = client.get(again.headers["Location"]).content.decode()
    anew = client.post(ADD, {**form, "csrfmiddlewaretoken": tokens[1]})

    with environments.use(environment):
        assert ApiKey.objects.filter(name="ci").count() == 2
    assert first.context["secret"] != anew.context["secret"]
    assert again.status_code == 302
    assert "Already done" in told


def test_reloading_the_answer_of_an_action_does_nothing_again() -> None:
    client, webhook = console_of(make_operator()), make_webhook(make_tenant("Acme"))
    page = reverse("admin:webhooks_webhook_rotate", args=[webhook.pk])
    form = {"hours": 1, "csrfmiddlewaretoken": str(client.get(page).context["csrf_token"])}

    first = client.post(page, form)
    kept = Webhook.objects.get(id=webhook.pk).secret
    again = client.post(page, form)

    assert first.context["secret"]
    assert Webhook.objects.get(id=webhook.pk).secret == kept
    assert "Already done" in client.get(again.headers["Location"]).content.decode()
