"""The verbs of this room, for views, tasks, commands and the rooms to the right."""

from datetime import datetime

from auditlog.vocabulary import Actor
from certificates import authorities, publication, responders
from certificates.authorities import Rotation
from certificates.issuance import issue, renew, renew_of_agent
from certificates.models import CertificateAuthority
from certificates.publication import (
    claim_due_lists,
    has_fresh_list,
    lists_are_due,
    publish,
    publish_claimed,
    publish_due,
)
from certificates.responders import answer as answer_ocsp
from certificates.revocation import (
    expire_due,
    reinstate_agent,
    retire_agent,
    revoke,
    revoke_for_agent,
    suspend_agent,
)
from certificates.verification import (
    MessageSignature,
    sign_message,
    verifications,
    verify,
    verify_message,
)

__all__ = [
    "MessageSignature",
    "answer_ocsp",
    "bootstrap",
    "claim_due_lists",
    "expire_due",
    "has_fresh_list",
    "issue",
    "lists_are_due",
    "publish",
    "publish_claimed",
    "publish_due",
    "reinstate_agent",
    "renew",
    "renew_of_agent",
    "retire_agent",
    "revoke",
    "revoke_for_agent",
    "rotate",
    "sign_message",
    "suspend_agent",
    "verifications",
    "verify",
    "verify_message",
]


def bootstrap(*, now: datetime) -> CertificateAuthority:
    """The issuing CA of the current environment, with its root and first revocation lists; safe to repeat."""
    authority = authorities.ensure_chain(now=now)
    _put_to_work(Actor.system("ca_init"), now)
    return authority


def rotate(*, actor: Actor, now: datetime, force: bool = False, with_root: bool = False) -> Rotation:
    """Let a new issuing CA take over, and publish its first lists; raises as `authorities.rotate`."""
    rotation = authorities.rotate(actor=actor, now=now, force=force, with_root=with_root)
    _put_to_work(actor, now)
    return rotation


def _put_to_work(actor: Actor, now: datetime) -> None:
    publication.publish_due(actor=actor, now=now)
    responders.maintain(actor=actor, now=now)
