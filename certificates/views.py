"""Certify, renew, revoke and read certificates; suspend, reinstate and retire agents."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from agents.models import Agent
from agents.serializers import AgentSerializer, ReasonSerializer, shown_agent
from agents.views import AGENT_ID
from auditlog.actors.requests import caller_of
from certificates import services
from certificates.issuing import issuance
from certificates.models import Certificate, CertificateStatus
from certificates.serializers import (
    CertificateSerializer,
    ReasonInputSerializer,
    RenewalSerializer,
    RevocationSerializer,
)
from compliance.api.gate import Scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import (
    newest_first,
    ok,
    read_choice,
    read_id,
    read_moment,
)
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import (
    BEFORE,
    IDEMPOTENCY_KEY,
    KEYED,
    LIMIT,
    MOMENT,
    enveloped,
    errors,
    paged,
)
from compliance.api.rest.views import ApiViewSet, validated
from compliance.core.clock import now

CERTIFICATE_ID = OpenApiParameter("certificate_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)


def issues(*statuses: int, parameter: OpenApiParameter, request: Any = None, **described: str) -> Any:
    """The schema of an endpoint that issues a certificate; `e404="…"` describes an error."""
    messages = {name: described.pop(name) for name in ("e404", "e409", "e422") if name in described}
    return extend_schema(
        **described,  # type: ignore[arg-type]
        parameters=[parameter, IDEMPOTENCY_KEY],
        request=request,
        responses={
            201: enveloped(CertificateSerializer),
            **errors(*KEYED, *statuses, e503="KMS signing service unavailable", **messages),
        },
    )


def changes_agent(*, e422: str, **described: str) -> Any:
    """The schema of an endpoint that changes an agent's status for a reason."""
    return extend_schema(
        **described,  # type: ignore[arg-type]
        parameters=[AGENT_ID],
        request=ReasonSerializer,
        responses={200: enveloped(AgentSerializer), **errors(*KEYED, e404="Agent not found", e422=e422)},
    )


def _renewed(request: ApiRequest, service: Callable[..., Certificate], **target: str) -> Response:
    seconds = validated(RenewalSerializer, request)["overlap_seconds"]
    return _issued(request, partial(service, overlap=timedelta(seconds=seconds)), **target)


def _issued(request: ApiRequest, service: Callable[..., Certificate], **target: str) -> Response:
    asked = caller_of(request)
    certificate = service(**asked, **target)
    return ok(CertificateSerializer(certificate, context={"now": asked["now"]}).data, status=201)


def _changed(request: ApiRequest, service: Callable[..., Agent], agent_id: str) -> Response:
    agent = service(
        agent_id=agent_id,
        reason=validated(ReasonSerializer, request)["reason"],
        **caller_of(request),
    )
    return ok(shown_agent(agent))


class AgentCertificateViewSet(ApiViewSet):
    schema_tag = "Certificates"
    required_scopes: ClassVar = {
        "certify": Scope.CERTIFICATES_ISSUE,
        "renew": Scope.CERTIFICATES_ISSUE,
        "suspend": Scope.AGENTS_WRITE,
        "reinstate": Scope.AGENTS_WRITE,
        "retire": Scope.AGENTS_WRITE,
    }

    @issues(
        parameter=AGENT_ID,
        operation_id="certifyAgent",
        summary="Issue a certificate for an agent",
        description="With an RSA-2048 key of its own; a pending agent becomes active.",
        e404="Agent not found",
        e409="Agent already has an active certificate",
        e422="The agent is suspended or retired, or has no owner and its tenant requires one",
    )
    @idempotent
    def certify(self, request: ApiRequest, agent_id: str) -> Response:
        return _issued(request, issuance.issue, agent_id=agent_id)

    @issues(
        409,
        parameter=AGENT_ID,
        request=RenewalSerializer,
        operation_id="renewAgentCertificate",
        summary="Issue a successor of the agent's active certificate",
        description=(
            "With a new key and serial number, for the profile of today. The old one is superseded, with "
            "`overlap_seconds` only after that time: both are valid meanwhile, and what stops the agent or "
            "revokes the new one ends both. An agent can be renewed once a minute at most; earlier requests "
            "get 429."
        ),
        e404="Agent not found",
        e422="Agent has no active certificate",
    )
    @idempotent
    def renew(self, request: ApiRequest, agent_id: str) -> Response:
        return _renewed(request, issuance.renew_of_agent, agent_id=agent_id)

    @changes_agent(
        operation_id="suspendAgent",
        summary="Suspend an agent and put its certificate on hold",
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
        operation_id="reinstateAgent",
        summary="Reinstate a suspended agent",
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
        operation_id="retireAgent",
        summary="Retire an agent for good",
        description="Its certificate is revoked as `cessationOfOperation`.",
        e422="Agent is retired",
    )
    def retire(self, request: ApiRequest, agent_id: str) -> Response:
        return _changed(request, services.retire_agent, agent_id)


class CertificateViewSet(ApiViewSet):
    """The tenant's certificates."""

    schema_tag = "Certificates"
    required_scopes: ClassVar = {
        "list": Scope.AGENTS_READ,
        "retrieve": Scope.AGENTS_READ,
        "revoke": Scope.CERTIFICATES_REVOKE,
        "renew": Scope.CERTIFICATES_ISSUE,
    }

    @extend_schema(
        operation_id="listCertificates",
        summary="List certificates, newest first",
        parameters=[
            OpenApiParameter("agent_id", OpenApiTypes.UUID),
            OpenApiParameter("status", OpenApiTypes.STR, enum=CertificateStatus.values),
            OpenApiParameter("expires_after", MOMENT),
            OpenApiParameter("expires_before", MOMENT),
            BEFORE,
            LIMIT,
        ],
        responses={200: paged(CertificateSerializer, tells_next=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        params, moment = request.query_params, now()
        certificates = (
            Certificate.objects.for_tenant(request.auth.tenant_id)
            .of_agent(read_id(params, "agent_id"))
            .with_status(read_choice(params, "status", CertificateStatus.values), moment)
            .ending(after=read_moment(params, "expires_after"), before=read_moment(params, "expires_before"))
        )
        return newest_first(
            certificates,
            request,
            lambda rows: [CertificateSerializer(row, context={"now": moment}).data for row in rows],
            field="issued_at",
        )

    @extend_schema(
        operation_id="getCertificate",
        summary="Fetch a certificate",
        parameters=[CERTIFICATE_ID],
        responses={200: enveloped(CertificateSerializer), **errors(*KEYED, e404="Certificate not found")},
    )
    def retrieve(self, request: ApiRequest, certificate_id: str) -> Response:
        certificate = Certificate.objects.for_tenant(request.auth.tenant_id).find(certificate_id)
        return ok(CertificateSerializer(certificate, context={"now": now()}).data)

    @extend_schema(
        operation_id="revokeCertificate",
        summary="Revoke a certificate",
        description=(
            "The next verify shows it; the revocation list follows within seconds. A certificate on hold is "
            "revoked for good, and stays revoked as of the hold's beginning. With an agent's current "
            "certificate goes the one that overlaps with it."
        ),
        parameters=[CERTIFICATE_ID],
        request=ReasonInputSerializer,
        responses={
            200: enveloped(RevocationSerializer),
            **errors(
                *KEYED,
                e404="Certificate not found",
                e409="Certificate is already revoked",
                e422="Certificate has expired",
            ),
        },
    )
    def revoke(self, request: ApiRequest, certificate_id: str) -> Response:
        certificate = services.revoke(
            certificate_id=certificate_id,
            reason=validated(ReasonInputSerializer, request)["reason"],
            **caller_of(request),
        )
        return ok(RevocationSerializer(certificate).data)

    @issues(
        parameter=CERTIFICATE_ID,
        request=RenewalSerializer,
        operation_id="renewCertificate",
        summary="Issue a successor and supersede this certificate",
        description=(
            "The successor has a new key and serial number, for the agent's profile of today. With "
            "`overlap_seconds` this one stays valid for so long. An agent is renewed once a minute at most; "
            "earlier requests get 429."
        ),
        e404="Certificate not found",
        e409="Certificate is already revoked",
        e422="Certificate has expired",
    )
    @idempotent
    def renew(self, request: ApiRequest, certificate_id: str) -> Response:
        return _renewed(request, issuance.renew, certificate_id=certificate_id)
