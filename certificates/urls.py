"""The routes of blueprints, certificates, verification, revocation lists, CAs and agent cards."""

from django.urls import path

from certificates.ocsp.views import OcspViewSet
from certificates.public import public_views
from certificates.public.agent_cards import AgentCardViewSet
from certificates.public.did_views import DidViewSet
from certificates.public.verify_page import VerifyPage
from certificates.renewing.views import BlueprintViewSet
from certificates.views import AgentCertificateViewSet, CertificateViewSet

_BLUEPRINT = "v1/blueprints/<str:blueprint_id>"

urlpatterns = [
    path("v1/blueprints", BlueprintViewSet.as_view({"get": "list", "post": "create"})),
    path(_BLUEPRINT, BlueprintViewSet.as_view({"get": "retrieve", "patch": "partial_update"})),
    path(f"{_BLUEPRINT}/renew", BlueprintViewSet.as_view({"post": "renew"})),
    path("v1/blueprint-renewals/<str:renewal_id>", BlueprintViewSet.as_view({"get": "renewal"})),
    path("v1/agents/<str:agent_id>/certify", AgentCertificateViewSet.as_view({"post": "certify"})),
    path("v1/agents/<str:agent_id>/renew", AgentCertificateViewSet.as_view({"post": "renew"})),
    path("v1/agents/<str:agent_id>/suspend", AgentCertificateViewSet.as_view({"post": "suspend"})),
    path("v1/agents/<str:agent_id>/reinstate", AgentCertificateViewSet.as_view({"post": "reinstate"})),
    path("v1/agents/<str:agent_id>/retire", AgentCertificateViewSet.as_view({"post": "retire"})),
    path("v1/certificates", CertificateViewSet.as_view({"get": "list"})),
    path("v1/certificates/<str:certificate_id>", CertificateViewSet.as_view({"get": "retrieve"})),
    path("v1/certificates/<str:certificate_id>/revoke", CertificateViewSet.as_view({"post": "revoke"})),
    path("v1/certificates/<str:certificate_id>/renew", CertificateViewSet.as_view({"post": "renew"})),
    path("v1/verify/<str:serial>", public_views.VerifyViewSet.as_view({"get": "retrieve"})),
    path("verify", VerifyPage.as_view()),
    path("v1/crl", public_views.RevocationListViewSet.as_view({"get": "current"})),
    path("v1/crl/<str:serial>", public_views.RevocationListViewSet.as_view({"get": "retrieve"})),
    path("v1/crl/<str:serial>/<str:part>", public_views.RevocationListViewSet.as_view({"get": "part"})),
    path("1.0/identifiers/<str:did>", DidViewSet.as_view({"get": "resolve"})),
    path("v1/agent-cards/<str:did>", AgentCardViewSet.as_view({"get": "retrieve"})),
    path("v1/ocsp", OcspViewSet.as_view({"post": "ask"})),
    # For clients that append to an address which ends in a slash.
    path("v1/ocsp/", OcspViewSet.as_view({"post": "ask"}, schema=None)),
    path("v1/ocsp/<path:encoded>", OcspViewSet.as_view({"get": "ask_by_address"})),
    path("v1/ca", public_views.AuthorityViewSet.as_view({"get": "list"})),
    path("v1/ca/<str:serial>", public_views.AuthorityViewSet.as_view({"get": "retrieve"})),
]
