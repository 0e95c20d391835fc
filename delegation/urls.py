"""Delegation's routes."""

from django.urls import path

from delegation.views import AgentDelegationViewSet, PublicDelegationViewSet

urlpatterns = [
    path("v1/agents/<str:agent_id>/delegation", AgentDelegationViewSet.as_view({"post": "create"})),
    path("v1/delegation/verify", PublicDelegationViewSet.as_view({"post": "verify"})),
    path(".well-known/jwks.json", PublicDelegationViewSet.as_view({"get": "jwks"})),
]
