"""`verify`: certificates, tokens, messages, webhooks and audit proofs, offline where all is at hand."""

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentid.command.accounts import client_for
from agentid.command.output import Output
from agentid.errors import ConfigurationError, NotValid, Reason
from agentid.jose import read_json, read_object
from agentid.verify.audit import LogTrust, verify_audit_proof
from agentid.verify.key_sets import read_keys
from agentid.verify.messages import verify_message
from agentid.verify.tokens import TokenRules, verify_token
from agentid.verify.webhooks import verify_webhook
from agentid.verify.x509.certificates import TrustedAuthorities, VerifiedCertificate, verify_certificate
from agentid.verify.x509.crl import RevocationLists


def register(commands: Any) -> None:
    verify = commands.add_parser("verify", help="check what an agent or the service signed")
    kinds = verify.add_subparsers(required=True, metavar="KIND")
    certificate = kinds.add_parser("certificate", help="an agent's certificate")
    certificate.add_argument("file", help="PEM; - for standard input")
    _authority_arguments(certificate)
    certificate.set_defaults(run=show_certificate)
    _token(kinds.add_parser("token", help="a delegation token"))
    _message(kinds.add_parser("message", help="a message that an agent signed"))
    _webhook(kinds.add_parser("webhook", help="a delivery, by its raw body"))
    _proof(kinds.add_parser("proof", help="an entry of the audit log"))


def _authority_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, help="pinned root in PEM; else those that the service names")
    parser.add_argument("--chain", type=Path, help="CAs under the root in PEM; else those of the service")
    parser.add_argument("--crl", type=Path, action="append", help="revocation list, DER or PEM; repeat")
    parser.add_argument("--no-revocation", action="store_true", help="do not ask whether it was revoked")
    parser.add_argument("--environment", choices=["live", "test"], default="live")


def show_certificate(given: argparse.Namespace, output: Output) -> None:
    found = _certificate(given, _read(given.file))
    identity, actions = found.identity, found.identity.permitted_actions
    output.data(
        valid=True,
        agent_id=found.agent_id,
        serial_number=found.serial_number,
        operator=identity.operator,
        did=identity.did,
        model=identity.model,
        model_version=identity.model_version,
        permitted_actions=None if actions is None else sorted(actions),
        not_after=found.not_after.isoformat(),
    )


def _certificate(given: argparse.Namespace, pem: bytes) -> VerifiedCertificate:
    roots, chain = (path and path.read_bytes() for path in (given.root, given.chain))
    if roots is None or chain is None:
        with client_for(given) as client:
            listed = client.authorities.list(environment=given.environment)
        roots = roots or "".join(each.pem for each in listed.certificates if each.role == "root").encode()
        chain = chain or listed.chain_pem.encode()
    trusted = TrustedAuthorities.of_pem(roots, chain, environment=given.environment)
    now = datetime.now(UTC)
    if given.no_revocation:
        return verify_certificate(pem, trusted=trusted, revocation=None, now=now)
    if given.crl:
        lists = RevocationLists.of(*(path.read_bytes() for path in given.crl))
    else:
        # The list is looked for only once the chain is known to be good.
        issuer = verify_certificate(pem, trusted=trusted, revocation=None, now=now).issuer
        with client_for(given) as client:
            lists = RevocationLists.of(client.authorities.crl_of(f"{issuer.serial_number:040x}"))
    return verify_certificate(pem, trusted=trusted, revocation=lists, now=now)


def _token(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("token", nargs="?", default="-", help="the token; - for standard input")
    parser.add_argument("--audience", required=True, help="your own name")
    parser.add_argument("--issuer", help="`iss`; else the base URL")
    parser.add_argument("--jwks", type=Path, help="keys; else those of the service")
    parser.add_argument("--any-audience", action="store_true", help="accept a token without an audience")
    parser.add_argument("--environment", choices=["live", "test"], default="live")
    parser.set_defaults(run=show_token)


def show_token(given: argparse.Namespace, output: Output) -> None:
    token = (sys.stdin.readline() if given.token == "-" else given.token).strip()
    jwks, issuer = given.jwks and read_object(given.jwks.read_bytes()), given.issuer
    if jwks is None or issuer is None:
        with client_for(given) as client:
            jwks = jwks or dict(client.delegation.jwks(environment=given.environment))
            issuer = issuer or client.transport.configuration.base_url
    rules = TokenRules(
        issuer, given.audience, environment=given.environment, accept_any_audience=given.any_audience
    )
    found = verify_token(token, keys=read_keys(jwks), rules=rules, now=datetime.now(UTC))
    output.data(
        valid=True,
        principal=found.principal,
        chain=[each.sub for each in found.chain],
        scope=sorted(found.scope),
        agent_id=found.agent_id,
        certificate_serial=found.certificate_serial,
        root_issuer=found.root_issuer,
        expires_at=found.expires_at.isoformat(),
    )


def _message(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the payload, JSON; - for standard input")
    parser.add_argument("--signature", required=True, help="base64, as it came")
    parser.add_argument("--certificate", type=Path, required=True, help="the signer's, PEM")
    _authority_arguments(parser)
    parser.set_defaults(run=show_message)


def show_message(given: argparse.Namespace, output: Output) -> None:
    signer = _certificate(given, given.certificate.read_bytes())
    verify_message(read_json(_read(given.file)), given.signature, signer=signer)
    output.data(valid=True, agent_id=signer.agent_id, certificate_serial=signer.serial_number)


def _webhook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the raw body; - for standard input")
    parser.add_argument("--header", action="append", default=[], help="'Name: value'; repeat")
    parser.add_argument("--service-name", default="Service", help="the word in X-Service-Signature")
    parser.add_argument("--tolerance", type=int, default=300, help="seconds")
    parser.set_defaults(run=show_webhook)


def show_webhook(given: argparse.Namespace, output: Output) -> None:
    secret = os.environ.get("AGENTID_WEBHOOK_SECRET")
    if not secret:
        raise ConfigurationError("set AGENTID_WEBHOOK_SECRET; arguments are seen by others")
    pairs = (each.partition(":") for each in given.header)
    headers = {name.strip(): value.strip() for name, _, value in pairs}
    found = verify_webhook(
        _read(given.file),
        headers,
        secret=secret,
        now=datetime.now(UTC),
        tolerance_seconds=given.tolerance,
        service_name=given.service_name,
    )
    output.data(valid=True, id=found.id, event=found.event, created_at=found.created_at)


def _proof(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="tlog-proof; - for standard input")
    parser.add_argument(
        "--log-key", action="append", required=True, help="name+id+key, from elsewhere; repeat"
    )
    parser.add_argument("--witness-key", action="append", default=[])
    parser.add_argument("--quorum", type=int, default=0, help="witnesses needed")
    parser.set_defaults(run=show_proof)


def show_proof(given: argparse.Namespace, output: Output) -> None:
    trust = LogTrust(tuple(given.log_key), tuple(given.witness_key), given.quorum)
    try:
        text = _read(given.file).decode("utf-8")
    except UnicodeDecodeError:
        raise NotValid(Reason.MALFORMED, "not UTF-8") from None
    found = verify_audit_proof(text, trust=trust)
    output.data(
        valid=True,
        index=found.index,
        entry_id=found.entry["id"],
        event_type=found.entry["event_type"],
        log=found.checkpoint.origin,
        size=found.checkpoint.size,
        witnesses=found.checkpoint.witnesses,
    )


def _read(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
