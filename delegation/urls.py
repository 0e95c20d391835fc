"""Delegation's routes."""

from django.urls import path

from delegation.views import AgentDelegationViewSet, DelegationVerifyViewSet, JwksViewSet

urlpatterns = [
    path("v1/agents/<str:agent_id>/delegation", AgentDelegationViewSet.as_view({"post": "create"})),
    path("v1/delegation/verify", DelegationVerifyViewSet.as_view({"post": "verify"})),
    path(".well-known/jwks.json", JwksViewSet.as_view({"get": "retrieve"})),
]
