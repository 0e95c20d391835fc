"""The client package's operations and results, generated from the OpenAPI description.

`./run exec python -m deploy.release.client_package` writes them, as `./run release` does first.
"""

import json
import keyword
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

from compliance.localdev.layout import ROOT
from deploy.release.versions import output_of

FOLDER: Final = Path("sdk/src/agentid/client/generated")
NAMES: Final = {
    "agents": "resolve=resolveDid card=getAgentCard list=listAgents register=registerAgent get=getAgent "
    "update=updateAgent certify=certifyAgent reinstate=reinstateAgent renew=renewAgentCertificate "
    "retire=retireAgent suspend=suspendAgent attestation=getAttestation "
    "attestation_pdf=getAttestationPdf attestation_bundle=getAttestationBundle credential=getAgentCredential "
    "usage=getAgentUsage",
    "approval_policies": "list=listApprovalPolicies get=getApprovalPolicy set=putApprovalPolicy "
    "delete=deleteApprovalPolicy",
    "approvals": "list=listApprovals open=openApproval get=getApproval",
    "audit_log": "list=listAuditLog proof=getAuditLogProof export=exportAuditLog "
    "checkpoint=audit_log_checkpoint_retrieve consistency=audit_log_consistency_retrieve "
    "keys=audit_log_keys_retrieve status=audit_log_status_retrieve tile=audit_log_tile_retrieve "
    "entries=audit_log_tile_entries_retrieve sandbox_checkpoint=audit_log_test_checkpoint_retrieve "
    "sandbox_consistency=audit_log_test_consistency_retrieve sandbox_keys=audit_log_test_keys_retrieve "
    "sandbox_status=audit_log_test_status_retrieve sandbox_tile=audit_log_test_tile_retrieve "
    "sandbox_entries=audit_log_test_tile_entries_retrieve",
    "access_reviews": "list=listAccessReviews open=openAccessReview get=getAccessReview "
    "update=updateAccessReview items=listAccessReviewItems decide=decideAccessReviewItem "
    "decide_all=decideAccessReviewItems record=getAccessReviewRecord",
    "agent_keys": "list=listAgentKeys register=registerAgentKey revoke=revokeAgentKey "
    "directory=getKeyDirectory",
    "authorities": "list=getAuthorities get=getAuthority crl=getRevocationList "
    "crl_of=getRevocationListOfAuthority crl_part=getPartialRevocationList ocsp=askOcsp "
    "ocsp_by_address=askOcspByAddress",
    "blueprints": "list=listBlueprints create=createBlueprint get=getBlueprint update=updateBlueprint "
    "renew=renewBlueprintAgents renewal=getBlueprintRenewal",
    "certificates": "list=listCertificates get=getCertificate renew=renewCertificate "
    "revoke=revokeCertificate verify=verifyCertificate",
    "decisions": "configuration=getAuthzenConfiguration evaluate=evaluateAccess "
    "evaluate_all=evaluateAccesses",
    "delegation": "jwks=getJwks issue=issueDelegation verify=verifyDelegation list=listDelegations "
    "get=getDelegation revoke=revokeDelegation status_list=getStatusList",
    "events": "list=listEvents record=recordEvent get=getEvent review=reviewEvent record_batch=recordEvents",
    "gateway_routes": "list=listGatewayRoutes create=createGatewayRoute get=getGatewayRoute "
    "update=updateGatewayRoute delete=deleteGatewayRoute",
    "incidents": "list=listIncidents get=getIncident update=updateIncident export=exportIncident",
    "messages": "sign=signMessage verify=verifyMessage",
    "oauth": "metadata=getAuthorizationServerMetadata introspect=introspectToken revoke=revokeToken "
    "exchange=exchangeToken",
    "report_schedules": "list=listReportSchedules create=createReportSchedule get=getReportSchedule "
    "update=updateReportSchedule delete=deleteReportSchedule",
    "owners": "replace=replaceOwner",
    "reports": "list=listReports request=requestReport get=getReport bundle=getReportBundle "
    "document=getReportDocument manifest=getReportManifest pdf=getReportPdf schema=getReportSchema",
    "signals": "configuration=getSsfConfiguration create=createSignalStream streams=getSignalStreams "
    "update=updateSignalStream delete=deleteSignalStream poll=pollSignals status=getSignalStreamStatus "
    "set_status=setSignalStreamStatus verify=verifySignalStream",
    "stops": "list=listStops begin=stopAgents get=getStop release=releaseStop receipt=getHaltReceipt",
    "trusted_issuers": "list=listTrustedIssuers create=createTrustedIssuer get=getTrustedIssuer "
    "update=updateTrustedIssuer delete=deleteTrustedIssuer",
    "traced_names": "list=listTracedNames map=mapTracedName delete=deleteTracedName",
    "webhooks": "list=listWebhooks create=createWebhook get=getWebhook update=updateWebhook "
    "delete=deleteWebhook deliveries=listWebhookDeliveries redeliver=redeliverWebhookDelivery "
    "recover=recoverWebhook rotate_secret=rotateWebhookSecret test=testWebhook",
}
"""Group and method of each operation in the client."""
LEFT_OUT: Final = {
    "authorizeRequest": "gateways ask it about others' requests; agentid.middleware does",
    "exportTraces": "OpenTelemetry's exporters send it",
}
CLASSES: Final = {
    "AuditLog": "AuditEntry",
    "PollAnswer": "Polled",
    "Stream": "SignalStream",
    "StreamStatus": "SignalStreamStatus",
}
"""Results that the client names otherwise than the description."""
AS_JSON: Final = {"AgentCard", "DidResolution", "Jwks"}
"""Documents of other standards, returned as they are."""
REPEATABLE: Final = {
    *("askOcsp", "evaluateAccess", "evaluateAccesses", "introspectToken", "pollSignals", "revokeToken"),
    *("verifyDelegation", "verifyMessage"),
}
"""POST requests that do no harm when sent twice."""
CREDENTIALS: Final = {"client_id", "client_secret", "client_assertion", "client_assertion_type", "assertion"}
"""Left out: the client authenticates with its API key in a header."""
FIRST: Final = {"grant_type"}
"""Their first value is the one for a client with an API key."""
SECRETS: Final = {"access_token", "credential", "receipt", "secret", "token"}
"""Fields of results that no repr shows."""
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
HEADER: Final = '"""{}, generated from the OpenAPI description by deploy/release."""\n\n'


class Generator:
    """Writes the two modules of one description."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.schemas: dict[str, Any] = description["components"]["schemas"]
        self.operations = {
            found["operationId"]: (method.upper(), path, found)
            for path, methods in description["paths"].items()
            for method, found in methods.items()
        }
        self.classes: dict[str, str] = {}

    def files(self) -> dict[str, str]:
        """Return the text of each file by its name. Raises: ValueError for an operation that has no name."""
        named = {each.split("=")[1] for names in NAMES.values() for each in names.split()}
        if unknown := (named | LEFT_OUT.keys()) ^ self.operations.keys():
            raise ValueError(f"NAMES and LEFT_OUT differ from the description: {', '.join(sorted(unknown))}")
        groups = [
            f"class {class_name(group)}(Group[S]):\n"
            + "\n".join(self._method(*each.split("=")) for each in names.split())
            for group, names in NAMES.items()
        ]
        operations = (
            "# mypy: disable-error-code=empty-body\n"
            + HEADER.format("An operation for each endpoint, in groups")
            + "from collections.abc import Mapping, Sequence\nfrom datetime import datetime\n"
            "from typing import Any, Generic\n\nfrom agentid.client.generated import results\n"
            "from agentid.client.operation import FORM, UNSET, Group, S, Unset, listing, operation\n"
            "from agentid.client.transport import Prove\n\n\n"
            + "\n\n".join(groups)
            + '\n\nclass Operations(Generic[S]):\n    """All operations, over one transport."""\n\n'
            "    def __init__(self, transport: S) -> None:\n        self.transport: S = transport\n"
            + "".join(
                f"        self.{name}: {class_name(name)}[S] = {class_name(name)}(transport)\n"
                for name in NAMES
            )
        )
        answers = (
            HEADER.format("What the service answers, as frozen records")
            + "from collections.abc import Mapping\nfrom dataclasses import field\n"
            "from datetime import datetime\nfrom typing import Any\n\n"
            "from agentid.client.records import Record\n\n\n" + "\n\n".join(self.classes.values())
        )
        return {
            "__init__.py": '"""What the OpenAPI description yields."""\n',
            "operations.py": operations,
            "results.py": answers,
        }

    def _method(self, name: str, operation_id: str) -> str:
        method, path, found = self.operations[operation_id]
        result, is_page, flags = self._answer(found)
        parameters = [each for each in found.get("parameters", ()) if each["in"] != "header"]
        headers = {each["name"] for each in found.get("parameters", ()) if each["in"] == "header"}
        fields = {each["name"]: (each["schema"], each.get("required", False)) for each in parameters}
        if content := found.get("requestBody", {}).get("content"):
            kind = next((each for each in (JSON, FORM) if each in content), next(iter(content)))
            schema = self._resolved(content[kind]["schema"])
            needed = schema.get("required", ())
            body = {each: (of, each in needed) for each, of in schema.get("properties", {}).items()}
            fields |= body if kind in (JSON, FORM) else {"request": (schema, True)}
            flags += [] if kind == JSON else ["body=FORM"] if kind == FORM else [f'body="{kind}"']
        flags += ["camel=True"] if any(each != snake(each) for each in fields) else []
        flags += ["repeatable=True"] if method in ("DELETE", "PUT") or operation_id in REPEATABLE else []
        placed, arguments, more = re.findall(r"{(\w+)}", path), [], []
        others = [each for each in fields if each not in placed]
        alone = [each for each in others if fields[each][1]]
        placed += ["stream_id"] if "stream_id" in others else alone if len(alone) == 1 else []
        for each in placed:
            of, is_needed = fields[each]
            arguments.append(self._argument(each, of, "" if is_needed or method == "PATCH" else "None"))
        for each in (each for each in others if each not in placed and each not in CREDENTIALS):
            of, is_needed = fields[each]
            more.append(
                self._argument(each, of, "" if is_needed else "UNSET" if method == "PATCH" else "None")
            )
        more.sort(key=lambda each: " = " in each)
        more += ["proof: str | Prove | None = None"] if "DPoP" in headers else []
        more += ['idempotency_key: str = ""'] if "Idempotency-Key" in headers else []
        kind = [f'"{path}"'] if is_page else [f'"{method}"', f'"{path}"']
        decorator = packed("    @listing(" if is_page else "    @operation(", [*kind, *flags], ")")
        signature = ["self", *arguments, *(["*", *more] if more else [])]
        head = packed(f"    def {name}(", signature, f") -> {result}:")
        return f'{decorator}\n{head}\n        """{found["summary"]}."""\n'

    def _argument(self, name: str, schema: dict[str, Any], default: str) -> str:
        of = self._resolved(schema)
        hint = self._hint(schema, of, is_argument=True)
        plain = snake(name) + ("_" if keyword.iskeyword(name) or name in ("type", "format") else "")
        if of.get("enum") and not default and (len(of["enum"]) == 1 or name in FIRST):
            default = json.dumps(of["enum"][0])
        if default == "UNSET":
            hint = f"{hint.removesuffix(' | None')} | Unset{' | None' * hint.endswith(' | None')}"
        elif default == "None" and hint != "Any" and not hint.endswith("| None"):
            hint = f"{hint} | None"
        return f"{plain}: {hint}{f' = {default}' if default else ''}"

    def _answer(self, found: dict[str, Any]) -> tuple[str, bool, list[str]]:
        """The type of an operation's result, whether it comes in pages, and what reads it otherwise."""
        content = next(each for code, each in found["responses"].items() if code[0] == "2").get("content", {})
        if not content:
            return "None", False, []
        kind = JSON if JSON in content else next(iter(content))
        schema, accept = content[kind]["schema"], [] if kind == JSON else [f'accept="{kind}"']
        if not kind.endswith("json"):
            return ("str" if kind.startswith("text/") or kind.endswith("+jwt") else "bytes"), False, accept
        of = self._resolved(schema)
        if many := next((each for each in of.get("oneOf", ()) if each.get("type") == "array"), None):
            return self._type(many), False, ["bare=True"]
        if "data" not in of.get("properties", {}):
            return self._type(schema), False, [*accept, "bare=True"]
        is_page = "next_cursor" in of["properties"]
        data = of["properties"]["data"]
        return self._type(data["items"] if is_page else data), is_page, []

    def _type(self, schema: dict[str, Any]) -> str:
        hint = self._hint(schema, self._resolved(schema))
        return re.sub(
            r"\b[A-Z]\w+\b", lambda name: f"{'results.' * (name[0] in self.classes)}{name[0]}", hint
        )

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with what it refers to, one level deep."""
        reference = schema.get("$ref") or next((each.get("$ref") for each in schema.get("allOf", ())), None)
        return {**schema, **self.schemas[reference.split("/")[-1]]} if reference else schema

    def _hint(self, schema: dict[str, Any], of: dict[str, Any], *, is_argument: bool = False) -> str:
        kinds = {each.get("type") or self._resolved(each).get("type") for each in of.get("oneOf", [of])}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None and "enum" not in of:
            return "Any"
        is_time = of.get("format") == "date-time" or (is_argument and "[0-9]{4}-" in of.get("pattern", ""))
        if of.get("format") == "binary":
            hint = "bytes"
        elif kind == "object":
            hint = self._object(schema, of, is_argument=is_argument)
        elif kind == "array":
            item = self._hint(of["items"], self._resolved(of["items"]), is_argument=is_argument)
            hint = f"Sequence[{item}]" if is_argument else f"tuple[{item}, ...]"
        elif is_time:
            hint = "datetime | str" if is_argument else "datetime"
        elif set(of.get("enum", ())) == {"false", "true"}:
            hint = "bool"
        else:
            hint = SCALARS[kind or "string"]
        return f"{hint} | None" if schema.get("nullable") else hint

    def _object(self, schema: dict[str, Any], of: dict[str, Any], *, is_argument: bool) -> str:
        reference = schema.get("$ref") or next((each.get("$ref") for each in schema.get("allOf", ())), "")
        name = reference.split("/")[-1]
        if not is_argument and name and name not in AS_JSON:
            return self._class(name)
        values = of.get("additionalProperties")
        kind = values.get("type") if isinstance(values, dict) else None
        return f"Mapping[str, {SCALARS.get(kind or '', 'Any')}]"

    def _class(self, name: str) -> str:
        """The name of a result's class, which is written before those that need it."""
        called = CLASSES.get(name, name)
        if called in self.classes:
            return called
        fields, needed = self._fields(name)
        base = self._base(name)
        inherited = self._fields(base)[0] if base else {}
        above = self._class(base) if base else "Record"
        doc = " ".join(self.schemas[name].get("description", "").split())
        lines = [f"class {called}({above}):"]
        if doc:
            lines += textwrap.wrap(f'"""{doc}"""', 110, initial_indent="    ", subsequent_indent="    ")
            lines.append("")
        for each, schema in fields.items():
            if each in inherited:
                continue
            hint = self._hint(schema, self._resolved(schema))
            value = " = field(repr=False)" if each in SECRETS else ""
            if each not in needed:
                is_list = hint.startswith("tuple")
                hint = hint if is_list or hint == "Any" or hint.endswith("None") else f"{hint} | None"
                value = " = ()" if is_list else " = None"
            lines.append(f"    {snake(each)}: {hint}{value}")
        self.classes[called] = "\n".join(lines) + "\n"
        return called

    def _fields(self, name: str) -> tuple[dict[str, Any], set[str]]:
        """The fields of a schema and the required ones; of alternatives all, and those that each requires."""
        of = self.schemas[name]
        parts = [self._resolved(each) for each in of.get("oneOf", [of])]
        fields = {each: schema for part in parts for each, schema in part["properties"].items()}
        return fields, set.intersection(*(set(part.get("required", ())) for part in parts))

    def _base(self, name: str) -> str | None:
        """The largest schema whose fields are the first of this one, so that one is an instance of both."""
        mine = list(self.schemas[name].get("properties", {}).items())
        found = [
            other
            for other, schema in self.schemas.items()
            if (its := list(schema.get("properties", {}).items()))
            and 4 < len(its) < len(mine)
            and mine[: len(its)] == its
        ]
        return max(found, key=lambda other: len(self.schemas[other]["properties"]), default=None)


def class_name(group: str) -> str:
    return "OAuth" if group == "oauth" else group.title().replace("_", "")


def snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def packed(head: str, arguments: list[str], tail: str) -> str:
    """A call or signature in lines of at most 110 characters, broken between arguments."""
    if len(line := head + ", ".join(arguments) + tail) <= 110:
        return line
    # A no-break space stands for the spaces of an argument while lines are filled.
    text = ", ".join(each.replace(" ", "\N{NO-BREAK SPACE}") for each in arguments)
    lines = textwrap.fill(
        text, 110, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False
    )
    return f"{head}\n{lines}\n    {tail}".replace("\N{NO-BREAK SPACE}", " ")


def description_of(root: Path) -> dict[str, Any]:
    """Return the description of the tree at `root`. Raises: StepFailed."""
    settings = dict.fromkeys(("SECRET_KEY", "ENCRYPTION_KEYS"), "of-the-release")
    settings |= dict.fromkeys(("DATABASE_URL", "TEST_DATABASE_URL"), "postgres://nowhere/none")
    command = [sys.executable, "manage.py", "spectacular", "--format", "openapi-json"]
    text = output_of(*command, folder=root, environment=os.environ | settings, hint="read what it says")
    description: dict[str, Any] = json.loads(text)
    return description


def write(root: Path) -> None:
    """Write the files of the tree at `root`. Raises: StepFailed, ValueError."""
    for name, text in Generator(description_of(root)).files().items():
        (root / FOLDER / name).write_text(text)


if __name__ == "__main__":
    write(ROOT)
