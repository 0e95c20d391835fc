"""Agents in the console."""

from django.contrib import admin

from agents.models import Agent
from compliance.console import TenantScopedAdmin


@admin.register(Agent)
class AgentAdmin(TenantScopedAdmin):
    list_display = ("name", "tenant", "status", "model", "version", "risk_score", "created_at")
    list_filter = ("status",)
    list_select_related = ("tenant",)
    search_fields = ("name", "id")
