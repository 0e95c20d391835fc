"""The services of certificates, for views, tasks, commands and other apps."""

from datetime import datetime

from auditlog.vocabulary import Actor
from certificates import authorities, revocation
from certificates.issuing import issuance, key_pool, wrapped_keys
from certificates.lists import publication, resuming
from certificates.models import CertificateAuthority
from certificates.ocsp import responders
from certificates.public import messages, verification
from compliance.keys import KeyStorage

answer_ocsp = responders.answer
expire_due = revocation.expire_due
issue = issuance.issue
lists_are_due = publication.lists_are_due
publish = publication.publish
publish_due = publication.publish_due
reinstate_agent = revocation.reinstate_agent
renew = issuance.renew
renew_of_agent = issuance.renew_of_agent
resume_lists = resuming.resume
retire_agent = revocation.retire_agent
revoke = revocation.revoke
revoke_for_agent = revocation.revoke_for_agent
sign_message = messages.sign_message
suspend_agent = revocation.suspend_agent
verifications = verification.verifications
verify = verification.verify
verify_jws = messages.verify_jws
verify_message = messages.verify_message


def bootstrap(*, now: datetime) -> CertificateAuthority:
    """The issuing CA of the current environment, created with its root and first lists if there is none.

    So is the wrapping key, where agents' keys are wrapped.
    """
    if key_pool.storage() is KeyStorage.WRAPPED:
        wrapped_keys.ensure(actor=Actor.system("ca_init"), now=now)
    authority = authorities.ensure_chain(now=now)
    _put_to_work(Actor.system("ca_init"), now)
    return authority


def rotate(
    *, actor: Actor, now: datetime, force: bool = False, with_root: bool = False
) -> authorities.Rotation:
    """Replace the issuing CA and publish the first lists of the new one; raises as `authorities.rotate`."""
    rotation = authorities.rotate(actor=actor, now=now, force=force, with_root=with_root)
    _put_to_work(actor, now)
    return rotation


def _put_to_work(actor: Actor, now: datetime) -> None:
    publication.publish_due(actor=actor, now=now)
    responders.maintain(actor=actor, now=now)
