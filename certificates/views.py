"""Certify, renew, revoke and read certificates; suspend, reinstate and retire agents."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from agents.models import Agent
from agents.serializers import AgentSerializer, ReasonSerializer
from auditlog.actors.requests import caller_of
from certificates import serializers, services
from certificates.issuing import issuance
from certificates.models import Certificate, CertificateStatus
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok, read_choice, read_id, read_moment
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import MOMENT
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now


def issues(operation_id: str, summary: str, **described: Any) -> Any:
    described["e503"] = "KMS signing service unavailable"
    scope, answer = Scope.CERTIFICATES_ISSUE, serializers.CertificateSerializer
    return operation(operation_id, summary, scope, answer, status=201, repeats=True, **described)


def changes_agent(operation_id: str, summary: str, **described: Any) -> Any:
    described |= {"request": ReasonSerializer, "e404": "Agent not found"}
    return operation(operation_id, summary, Scope.AGENTS_WRITE, AgentSerializer, **described)


def _renewed(request: ApiRequest, service: Callable[..., Certificate], **target: str) -> Response:
    seconds = validated(serializers.RenewalSerializer, request)["overlap_seconds"]
    return _issued(request, partial(service, overlap=timedelta(seconds=seconds)), **target)


def _issued(request: ApiRequest, service: Callable[..., Certificate], **target: str) -> Response:
    asked = caller_of(request)
    certificate = service(**asked, **target)
    return ok(serializers.CertificateSerializer(certificate, context={"now": asked["now"]}).data, status=201)


def _changed(request: ApiRequest, service: Callable[..., Agent], agent_id: str) -> Response:
    agent = service(
        agent_id=agent_id, reason=validated(ReasonSerializer, request)["reason"], **caller_of(request)
    )
    return ok(AgentSerializer(agent).data)


class AgentCertificateViewSet(ApiViewSet):
    schema_tag = "Certificates"

    @issues(
        "certifyAgent",
        "Issue a certificate for an agent",
        request=None,
        description="With an RSA-2048 key of its own; a pending agent becomes active.",
        e404="Agent not found",
        e409="Agent already has an active certificate",
        e422="The agent is suspended or retired, or has no owner and its tenant requires one",
    )
    def certify(self, request: ApiRequest, agent_id: str) -> Response:
        return _issued(request, issuance.issue, agent_id=agent_id)

    @issues(
        "renewAgentCertificate",
        "Issue a successor of the agent's active certificate",
        request=serializers.RenewalSerializer,
        description=(
            "With a new key and serial number, for the profile of today. The old one is superseded, with "
            "`overlap_seconds` only after that time: both are valid meanwhile, and what stops the agent or "
            "revokes the new one ends both. An agent can be renewed once a minute at most; earlier requests "
            "get 429."
        ),
        e404="Agent not found",
        e422="Agent has no active certificate",
    )
    def renew(self, request: ApiRequest, agent_id: str) -> Response:
        return _renewed(request, issuance.renew_of_agent, agent_id=agent_id)

    @changes_agent(
        "suspendAgent",
        "Suspend an agent and put its certificate on hold",
        description=(
            "The certificate is `revoked` with the reason `certificateHold` at the next verify, in OCSP and "
            "on the revocation lists, until the agent is reinstated. `reason` is kept with the agent and in "
            "the audit log, and is not public."
        ),
        e422="Agent is already suspended",
    )
    def suspend(self, request: ApiRequest, agent_id: str) -> Response:
        return _changed(request, services.suspend_agent, agent_id)

    @changes_agent(
        "reinstateAgent",
        "Reinstate a suspended agent",
        description=(
            "Its certificate comes off hold and the agent is `active` at once. Where the certificate was "
            "revoked for good (an automatic revocation does) or has ended, the agent becomes `pending`, and "
            "certify issues a certificate with a new serial number. An agent that the service stopped needs "
            "the scope `agents:reinstate` too; its strikes are cleared then, and only then."
        ),
        e422="Only a suspended agent can be reinstated",
    )
    def reinstate(self, request: ApiRequest, agent_id: str) -> Response:
        may_undo_stop = Scope.AGENTS_REINSTATE in request.auth.scopes
        return _changed(request, partial(services.reinstate_agent, may_undo_stop=may_undo_stop), agent_id)

    @changes_agent(
        "retireAgent",
        "Retire an agent for good",
        description="Its certificate is revoked as `cessationOfOperation`.",
        e422="Agent is retired",
    )
    def retire(self, request: ApiRequest, agent_id: str) -> Response:
        return _changed(request, services.retire_agent, agent_id)


class CertificateViewSet(ApiViewSet):
    """The tenant's certificates."""

    schema_tag = "Certificates"

    @listing(
        "listCertificates",
        "List certificates, newest first",
        Scope.AGENTS_READ,
        serializers.CertificateSerializer,
        parameters=[
            OpenApiParameter("agent_id", OpenApiTypes.UUID),
            OpenApiParameter("status", OpenApiTypes.STR, enum=CertificateStatus.values),
            OpenApiParameter("expires_after", MOMENT),
            OpenApiParameter("expires_before", MOMENT),
        ],
    )
    def list(self, request: ApiRequest) -> Response:
        params, moment = request.query_params, now()
        certificates = (
            Certificate.objects.for_tenant(request.auth.tenant_id)
            .of_agent(read_id(params, "agent_id"))
            .with_status(read_choice(params, "status", CertificateStatus.values), moment)
            .where(
                expires_at__gt=read_moment(params, "expires_after"),
                expires_at__lt=read_moment(params, "expires_before"),
            )
        )
        return newest_first(
            certificates,
            request,
            lambda rows: [
                serializers.CertificateSerializer(row, context={"now": moment}).data for row in rows
            ],
            field="issued_at",
        )

    @operation(
        "getCertificate",
        "Fetch a certificate",
        Scope.AGENTS_READ,
        serializers.CertificateSerializer,
        e404="Certificate not found",
    )
    def retrieve(self, request: ApiRequest, certificate_id: str) -> Response:
        certificate = Certificate.objects.for_tenant(request.auth.tenant_id).find(certificate_id)
        return ok(serializers.CertificateSerializer(certificate, context={"now": now()}).data)

    @operation(
        "revokeCertificate",
        "Revoke a certificate",
        Scope.CERTIFICATES_REVOKE,
        serializers.RevocationSerializer,
        description=(
            "The next verify shows it; the revocation list follows within seconds. A certificate on hold is "
            "revoked for good, and stays revoked as of the hold's beginning. With an agent's current "
            "certificate goes the one that overlaps with it."
        ),
        request=serializers.ReasonInputSerializer,
        e404="Certificate not found",
        e409="Certificate is already revoked",
        e422="Certificate has expired",
    )
    def revoke(self, request: ApiRequest, certificate_id: str) -> Response:
        certificate = services.revoke(
            certificate_id=certificate_id,
            reason=validated(serializers.ReasonInputSerializer, request)["reason"],
            **caller_of(request),
        )
        return ok(serializers.RevocationSerializer(certificate).data)

    @issues(
        "renewCertificate",
        "Issue a successor and supersede this certificate",
        request=serializers.RenewalSerializer,
        description=(
            "The successor has a new key and serial number, for the agent's profile of today. With "
            "`overlap_seconds` this one stays valid for so long. An agent is renewed once a minute at most; "
            "earlier requests get 429."
        ),
        e404="Certificate not found",
        e409="Certificate is already revoked",
        e422="Certificate has expired",
    )
    def renew(self, request: ApiRequest, certificate_id: str) -> Response:
        return _renewed(request, issuance.renew, certificate_id=certificate_id)
