"""Routes of agents; blueprints, owners, suspend, certify and sign are in the rooms whose rows they touch."""

from django.urls import path

from agents.views import AgentViewSet

urlpatterns = [
    path("v1/agents", AgentViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/agents/<str:agent_id>", AgentViewSet.as_view({"get": "retrieve", "patch": "partial_update"})),
]
