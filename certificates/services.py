"""The verbs of this room, for views, tasks, commands and the rooms to the right."""

from datetime import datetime

from auditlog.vocabulary import Actor
from certificates import authorities, publication
from certificates.authorities import Rotation
from certificates.issuance import issue, renew, renew_of_agent
from certificates.models import CertificateAuthority
from certificates.publication import publish, publish_due
from certificates.revocation import expire_due, retire_agent, revoke, revoke_for_agent
from certificates.verification import MessageSignature, sign_message, verify, verify_message

__all__ = [
    "MessageSignature",
    "bootstrap",
    "expire_due",
    "issue",
    "publish",
    "publish_due",
    "renew",
    "renew_of_agent",
    "retire_agent",
    "revoke",
    "revoke_for_agent",
    "rotate",
    "sign_message",
    "verify",
    "verify_message",
]


def bootstrap(*, now: datetime) -> CertificateAuthority:
    """The issuing CA of the current environment, with its root and first revocation lists; safe to repeat."""
    authority = authorities.ensure_chain(now=now)
    publication.publish_due(actor=Actor.system("ca_init"), now=now)
    return authority


def rotate(*, actor: Actor, now: datetime, force: bool = False, with_root: bool = False) -> Rotation:
    """Let a new issuing CA take over, and publish its first lists; raises as `authorities.rotate`."""
    rotation = authorities.rotate(actor=actor, now=now, force=force, with_root=with_root)
    publication.publish_due(actor=actor, now=now)
    return rotation
