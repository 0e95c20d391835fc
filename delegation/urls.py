"""Delegation's routes."""

from django.urls import path

from delegation.issued.views import DelegationViewSet, StatusListViewSet
from delegation.views import AgentDelegationViewSet, PublicDelegationViewSet

urlpatterns = [
    path("v1/agents/<str:agent_id>/delegation", AgentDelegationViewSet.as_view({"post": "create"})),
    path("v1/delegation/verify", PublicDelegationViewSet.as_view({"post": "verify"})),
    path("v1/delegations", DelegationViewSet.as_view({"get": "list"})),
    path("v1/delegations/<str:token_id>", DelegationViewSet.as_view({"get": "retrieve"})),
    path("v1/delegations/<str:token_id>/revoke", DelegationViewSet.as_view({"post": "revoke"})),
    path("v1/status-lists/<str:list_id>", StatusListViewSet.as_view({"get": "retrieve"})),
    path(".well-known/jwks.json", PublicDelegationViewSet.as_view({"get": "jwks"})),
]
