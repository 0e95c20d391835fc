"""`GET /.well-known/authzen-configuration`."""

from django.conf import settings

from compliance.tests.client import ApiClient


def test_metadata_names_the_endpoints_to_anyone() -> None:
    answer = ApiClient().get("/.well-known/authzen-configuration")

    assert answer.status_code == 200
    assert answer.json() == {
        "policy_decision_point": settings.BASE_URL,
        "access_evaluation_endpoint": f"{settings.BASE_URL}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{settings.BASE_URL}/access/v1/evaluations",
    }
    assert answer["Cache-Control"] == "public, max-age=3600"
