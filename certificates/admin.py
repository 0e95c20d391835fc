"""Certificates, authorities and lists in the console; read-only."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from certificates.models import (
    Certificate,
    CertificateAuthority,
    Issuance,
    PooledKey,
    RevocationList,
)
from compliance.console import SystemAdmin, TenantScopedAdmin


@admin.register(Certificate)
class CertificateAdmin(TenantScopedAdmin):
    list_display = ("serial_number", "agent", "status", "issued_at", "expires_at", "revoked_at")
    list_filter = ("status",)
    list_select_related = ("agent",)
    search_fields = ("serial_number", "agent__name", "agent__id")


@admin.register(Issuance)
class IssuanceAdmin(TenantScopedAdmin):
    list_display = ("serial_number", "agent", "state", "error", "created_at", "finished_at")
    list_filter = ("state",)
    list_select_related = ("agent",)


@admin.register(CertificateAuthority)
class CertificateAuthorityAdmin(SystemAdmin):
    list_display = ("common_name", "role", "serial_number", "crl_number", "not_after", "retired_at")
    exclude = ("certificate_der",)


@admin.register(RevocationList)
class RevocationListAdmin(SystemAdmin):
    list_display = ("authority", "number", "entry_count", "this_update", "next_update")
    list_select_related = ("authority",)
    exclude = ("der",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("der")


@admin.register(PooledKey)
class PooledKeyAdmin(SystemAdmin):
    list_display = ("key_uri", "created_at")
    exclude = ("spki",)
