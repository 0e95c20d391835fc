"""`/v1/agents/{id}/usage`: what an agent uses of what it may do."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework import serializers
from rest_framework.response import Response

from agents.errors import AgentNotFound
from agents.models import Agent
from compliance.api.gate import Scope
from compliance.api.pagination import ok, read_moment
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import MOMENT
from compliance.api.rest.views import ApiViewSet, operation
from compliance.core.clock import now
from compliance.core.errors import Invalid
from events.figures.models import NameOutcome
from events.figures.usage import WINDOW, usage

REFUSERS = [outcome.value for outcome in NameOutcome if outcome is not NameOutcome.USED]
TEXT = (
    "From figures kept by UTC day of receipt, and the events since: days that the period only touches count "
    "whole. `refused` by the `scope` as an event was recorded (such names are not `used`), by the `gateway`, "
    "or by an `evaluation`, which are minutes old. `unused` is empty unless `is_complete`: an agent with "
    "more than 200 names a day, 900 octets of names in an event, 2,000 events since the figures, or days "
    "past their retention, proves no disuse."
)
EXAMPLE = OpenApiExample(
    "A quarter",
    response_only=True,
    value={
        "data": {
            "period_start": "2026-09-01",
            "period_end": "2026-11-29",
            "permitted_actions": ["place_order", "delete_account"],
            "used": [
                {"name": "place_order", "count": 5210, "last_at": "2026-11-28T16:04:11Z", "permitted": True}
            ],
            "unused": ["delete_account"],
            "refused": [
                {"name": "wire_funds", "count": 2, "last_at": "2026-10-02T08:00:00Z", "refused_by": "scope"}
            ],
            "is_complete": True,
        }
    },
)


class NameUseSerializer(serializers.Serializer[Any]):
    """How often a name was used, or refused, and when last."""

    name = serializers.CharField()
    count = serializers.IntegerField()
    last_at = serializers.DateTimeField()


class UsedNameSerializer(NameUseSerializer):
    """A name that an agent used."""

    permitted = serializers.BooleanField(allow_null=True, help_text="By the scope of now; null without one.")


class RefusedNameSerializer(NameUseSerializer):
    """A name that was refused."""

    refused_by = serializers.ChoiceField(REFUSERS)


class UsageSerializer(serializers.Serializer[Any]):
    """An agent's used, unused and refused actions."""

    period_start = serializers.DateField(source="since")
    period_end = serializers.DateField(source="until", help_text="The last day.")
    permitted_actions = serializers.ListField(
        source="permitted", child=serializers.CharField(), allow_null=True, help_text="The scope of now."
    )
    used = UsedNameSerializer(many=True)
    unused = serializers.ListField(child=serializers.CharField())
    refused = RefusedNameSerializer(many=True)
    is_complete = serializers.BooleanField()


class UsageViewSet(ApiViewSet):
    """What an agent uses of its scope."""

    schema_tag = "Agents"

    @operation(
        "getAgentUsage",
        "Fetch the actions that an agent used, did not use, or was refused",
        Scope.EVENTS_READ,
        UsageSerializer,
        description=TEXT,
        parameters=[
            OpenApiParameter("period_start", MOMENT, description="90 days before the end without one."),
            OpenApiParameter("period_end", MOMENT, description="Now without one."),
        ],
        examples=[EXAMPLE],
        e404=AgentNotFound.message,
    )
    def retrieve(self, request: ApiRequest, agent_id: str) -> Response:
        agent = Agent.objects.for_tenant(request.auth.tenant_id).find(agent_id)
        moment = now()
        end = read_moment(request.query_params, "period_end") or moment
        try:
            start = read_moment(request.query_params, "period_start") or end - WINDOW
        except OverflowError as error:
            raise Invalid("period_end is too early") from error
        if start > end:
            raise Invalid("period_start must not be after period_end")
        return ok(UsageSerializer(usage(agent, start, end, moment)).data)
