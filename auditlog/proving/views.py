"""The tree of each environment over HTTP (C2SP tlog-tiles): `/v1/audit-log/…`, and `/v1/audit-log/test/…`."""

from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from auditlog.errors import TileNotFound
from auditlog.proving import proofs
from auditlog.proving.proofs import TEXT, LogState, WitnessReport, log_state, proof_file
from auditlog.sealing import keys
from compliance.api.gate import Scope
from compliance.api.pagination import ok, read_size
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import KEYED, PUBLIC, enveloped, errors
from compliance.api.rest.views import ApiViewSet, PublicViewSet, operation
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encodings import b64_encode
from compliance.core.environments import Environment

OCTETS = "application/octet-stream"
UNCHANGING = "public, max-age=31536000, immutable"
PRIVATE = "private, max-age=31536000, immutable"
QUORUM = "Witness-Quorum"
BRIEF = "public, max-age=1"
PATH = OpenApiParameter(
    "path",
    {"type": "string", "pattern": r"^(x[0-9]{3}/)*[0-9]{3}(\.p/[1-9][0-9]{0,2})?$"},
    location=OpenApiParameter.PATH,
    description="Index in groups of three digits, all but the last behind `x`; `.p/<width>` if partial.",
)
LEVEL = OpenApiParameter(
    "level", {"type": "integer", "minimum": 0, "maximum": 63}, location=OpenApiParameter.PATH
)
SIZE = {"type": "integer", "minimum": 0, "maximum": 9_999_999_999_999_999}
FROM = OpenApiParameter("from", SIZE, description="0 when omitted.")
TO = OpenApiParameter("to", SIZE, description="The newest checkpoint's size when omitted.")
TREE_TAG = "Audit log"


def _file(description: str, kind: str) -> dict[Any, Any]:
    return {(200, kind): OpenApiResponse(OpenApiTypes.BINARY, description)}


class ConsistencySerializer(serializers.Serializer[Any]):
    """A consistency proof; `hashes` in base64, in the order of RFC 6962 §2.1.2."""

    from_size = serializers.IntegerField()
    to_size = serializers.IntegerField()
    hashes = serializers.ListField(child=serializers.CharField(), read_only=True)


class WitnessReportSerializer(serializers.Serializer[WitnessReport]):
    """A witness; `name` is that of its cosignatures, `size` and `cosigned_at` are of the last one."""

    name = serializers.CharField(source="key_name")
    size = serializers.IntegerField()
    cosigned_at = serializers.DateTimeField(allow_null=True)


class LogStateSerializer(serializers.Serializer[LogState]):
    """Sizes in entries, 0 before the first: of the tree, of the newest checkpoint, of the published one."""

    tree_size = serializers.IntegerField()
    signed_size = serializers.IntegerField()
    published_size = serializers.IntegerField()
    quorum = serializers.ChoiceField(
        proofs.QUORUMS, help_text="Of the published checkpoint, as in `Witness-Quorum`."
    )
    witnesses = WitnessReportSerializer(many=True)


class TreeViewSet(PublicViewSet):
    """The public part of one environment's tree: it discloses hashes and how many entries there are."""

    schema_tag = TREE_TAG
    environment: Environment = Environment.LIVE

    @extend_schema(
        summary="The newest checkpoint",
        description=(
            "A signed note (C2SP tlog-checkpoint) with the cosignatures of witnesses. The header "
            "`Witness-Quorum` says `met`, `missing` or `none` (no witness is configured)."
        ),
        responses={**_file("The checkpoint", "text/plain"), **errors(*PUBLIC, e404="No checkpoint yet")},
    )
    def checkpoint(self, request: Request) -> HttpResponse:
        with environments.use(self.environment):
            found = proofs.checkpoint(now=now())
            answer = _answer(found.note, TEXT, BRIEF)
            answer[QUORUM] = proofs.quorum_of(found)
        return answer

    @extend_schema(
        summary="How far the log is sealed, signed and witnessed",
        responses={200: enveloped(LogStateSerializer), **errors(*PUBLIC)},
    )
    def status(self, request: Request) -> Response:
        with environments.use(self.environment):
            found = log_state(now=now())
        return ok(LogStateSerializer(found).data)

    @extend_schema(
        summary="The log's verifier keys",
        description="One key a line as `<name>+<key id>+<key>` (C2SP signed-note), the newest first.",
        responses={**_file("The keys", "text/plain"), **errors(*PUBLIC)},
    )
    def keys(self, request: Request) -> HttpResponse:
        with environments.use(self.environment):
            lines = [f"{key.encode()}\n" for key in keys.verifier_keys(now=now())]
        return _answer("".join(lines), TEXT, BRIEF)

    @extend_schema(
        summary="A tile of hashes",
        description="256 hashes of 32 octets, fewer in a partial tile (C2SP tlog-tiles). Tiles never change.",
        parameters=[LEVEL, PATH],
        responses={**_file("The tile", OCTETS), **errors(*PUBLIC, e404="No such tile")},
    )
    def tile(self, request: Request, level: str, path: str) -> HttpResponse:
        with environments.use(self.environment):
            return _answer(proofs.tile(level, path), OCTETS, UNCHANGING)

    @extend_schema(
        summary="Prove that one tree begins with another",
        parameters=[FROM, TO],
        responses={
            200: enveloped(ConsistencySerializer),
            **errors(*PUBLIC, e404="No checkpoint yet", e422="The tree has never had this size"),
        },
    )
    def consistency(self, request: Request) -> Response:
        old, new = (read_size(request.query_params, name) for name in ("from", "to"))
        with environments.use(self.environment):
            found = proofs.consistency(old=old or 0, new=new)
        hashes = list(map(b64_encode, found.path))
        return ok({"from_size": found.old, "to_size": found.new, "hashes": hashes})


class BundleViewSet(ApiViewSet):
    """Leaves of the environment's tree, for its own API keys."""

    schema_tag = TREE_TAG
    required_scopes: ClassVar = {"bundle": Scope.AUDIT_READ}
    environment: Environment = Environment.LIVE

    @extend_schema(
        summary="A bundle of leaves",
        description=(
            "Each leaf behind its length in two octets (C2SP tlog-tiles). A leaf holds salted commitments "
            "only; a tenant opens those of its own entries with a proof or an export."
        ),
        parameters=[PATH],
        responses={
            **_file("The bundle", OCTETS),
            **errors(*KEYED, e404="No such tile", e410="The contents are past their retention"),
        },
    )
    def bundle(self, request: ApiRequest, path: str) -> HttpResponse:
        if environments.current() != self.environment:
            raise TileNotFound()
        return _answer(proofs.bundle(path), OCTETS, PRIVATE)


class ProofViewSet(ApiViewSet):
    schema_tag = TREE_TAG

    @operation(
        "getAuditLogProof",
        "An entry's proof, to verify offline",
        Scope.AUDIT_READ,
        _file("The proof", "text/plain"),
        description=(
            "A C2SP tlog-proof file. Its `extra` line is base64 of JSON: the entry's fields and the salts "
            "that open its leaf (docs/audit-log.md)."
        ),
        parameters=[OpenApiParameter("entry_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)],
        e404="Audit log entry not found",
        e425="Not sealed yet; try again shortly",
    )
    def retrieve(self, request: ApiRequest, entry_id: str) -> HttpResponse:
        found = proofs.proof(tenant_id=request.auth.tenant_id, entry_id=entry_id, now=now())
        return proof_file(found, entry_id)


def _answer(body: str | bytes, kind: str, caching: str) -> HttpResponse:
    return HttpResponse(body, content_type=kind, headers={"Cache-Control": caching})
