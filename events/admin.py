"""Behavioural events in the console."""

from django.contrib import admin

from compliance.console import TenantScopedAdmin
from events.models import BehaviorEvent


@admin.register(BehaviorEvent)
class BehaviorEventAdmin(TenantScopedAdmin):
    list_display = ("occurred_at", "agent", "action_type", "risk_score", "risk_band", "received_at")
    list_filter = ("risk_band", "action_type")
    list_select_related = ("agent",)
    search_fields = ("=id", "=agent__id", "agent__name")
    show_full_result_count = False
