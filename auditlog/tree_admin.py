"""The tree in the console: how far it is sealed, signed and witnessed, and the keys of the log."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString

from auditlog.proving.proofs import MET, MISSING, NO_POLICY
from auditlog.proving.state import WitnessReport, log_state
from auditlog.sealing.keys import log_keys, verifier_key
from compliance.console.access import access_of
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import chip, code, visible
from compliance.console.navigation import NavigationLine
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment

SAFE_METHODS = ("GET", "HEAD")
PREFIXES = {Environment.LIVE: "/v1/audit-log", Environment.TEST: "/v1/audit-log/test"}
QUORUM_TONES = {MET: "success", MISSING: "danger", NO_POLICY: "default"}


class TreeAdmin(TenantScopedAdmin):
    """One page in the place of a list; members see it without the witnesses' addresses and errors."""

    navigation = NavigationLine("Evidence", 2, "Tree and witnesses", "account_tree")
    tenant_field = None

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in SAFE_METHODS:
            return HttpResponseNotAllowed(SAFE_METHODS)
        with environments.auditing():
            state, keys = log_state(now=now()), log_keys(now())
        access = access_of(request)
        context = {
            **self.admin_site.each_context(request),
            "title": "Tree and witnesses",
            "state": state,
            "keys": [
                {
                    "vkey": verifier_key(key).encode(),
                    "active_from": key.active_from,
                    "retired_at": key.retired_at,
                }
                for key in reversed(keys)
            ],
            "quorum": chip(state.quorum, QUORUM_TONES[state.quorum]),
            "is_operator": access.is_operator,
            "witnesses": [
                {
                    "name": visible(each.name),
                    "key_name": code(each.key_name),
                    "url": code(each.url) if access.is_operator else "",
                    "size": each.size,
                    "cosigned_at": each.cosigned_at,
                    "state": _witness_state(each),
                    "problem": visible(each.problem) if access.is_operator else "",
                }
                for each in state.witnesses
            ],
            "prefix": PREFIXES[access.environment],
        }
        return TemplateResponse(request, "admin/auditlog/tree.html", context)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:auditlog_treehead_changelist"))


def _witness_state(witness: WitnessReport) -> SafeString:
    if witness.contradicts:
        return chip("contradicts this log", "danger")
    if witness.problem:
        return chip("did not cosign", "warning")
    if witness.url is None:
        return chip("not asked", "default")
    return chip("cosigns", "success") if witness.cosigned_at else chip("waiting", "default")
