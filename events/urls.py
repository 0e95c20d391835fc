"""Routes of events, of OpenTelemetry, of agents' usage, and of messages, which write events."""

from django.urls import path

from events.figures.views import UsageViewSet
from events.messages.views import MessageViewSet, SigningViewSet
from events.otlp.views import TracedNameViewSet, TraceViewSet
from events.views import EventBatchViewSet, EventViewSet

urlpatterns = [
    path("v1/events", EventViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/events/batch", EventBatchViewSet.as_view({"post": "create"})),
    path("v1/events/<str:event_id>", EventViewSet.as_view({"get": "retrieve"})),
    path("v1/events/<str:event_id>/review", EventViewSet.as_view({"post": "review"})),
    path("v1/otlp/v1/traces", TraceViewSet.as_view({"post": "create"})),
    path("v1/otlp/names", TracedNameViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/otlp/names/<str:name_id>", TracedNameViewSet.as_view({"delete": "destroy"})),
    path("v1/agents/<str:agent_id>/usage", UsageViewSet.as_view({"get": "retrieve"})),
    path("v1/agents/<str:agent_id>/sign", SigningViewSet.as_view({"post": "sign"})),
    path("v1/verify/message", MessageViewSet.as_view({"post": "create"})),
]
