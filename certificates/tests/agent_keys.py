"""Agents' keys for tests: a few RSA key pairs, stored in the tokens under ever new ids.

A token generates a key in a quarter of a second. Tests that commit use keys up, for their rows stay.
"""

from functools import lru_cache
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pkcs11 import Attribute
from pkcs11.util.rsa import decode_rsa_private_key

from certificates.issuing import key_pool
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.keys.base import KeyRef, KeyStorage
from compliance.keys.pkcs11.backend import Pkcs11Backend
from compliance.keys.pkcs11.objects import PRIVATE, SIGN_AND_VERIFY
from compliance.keys.pkcs11.token import TokenSession
from compliance.keys.registry import backend_for
from compliance.keys.uri import Pkcs11Uri, build

PAIRS: Final = 8
"""Keys of one environment with successive numbers are different, up to this many."""


def make_agent_key(number: int) -> KeyRef:
    """A key as of `key_pool.generate`; one that is wrapped, or behind key hosts, is generated."""
    environment = environments.current()
    backend = backend_for(environment)
    if key_pool.storage() is KeyStorage.WRAPPED or not isinstance(backend, Pkcs11Backend):
        return key_pool.generate(now=now())
    token, key_id = backend._pick_shard(), new_id().bytes
    pair = _pair(environment, number % PAIRS)
    pkcs1 = pair.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    attributes = decode_rsa_private_key(pkcs1, SIGN_AND_VERIFY) | PRIVATE
    attributes |= {Attribute.TOKEN: True, Attribute.ID: key_id, Attribute.LABEL: key_pool.LABEL}

    def store(session: TokenSession) -> None:
        made: Any = session.session.create_object(attributes)
        session.login.handles[key_id] = made.handle

    backend.perform(token, store)
    return KeyRef.of(build(Pkcs11Uri(token=token, id=key_id, object=key_pool.LABEL)), pair.public_key())


@lru_cache
def _pair(environment: Environment, number: int) -> rsa.RSAPrivateKey:
    """One of the test run's key pairs, made when it is first asked for."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
