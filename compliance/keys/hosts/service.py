"""The operations of a key host on the tokens of its own PKCS#11 module."""

import logging

import msgspec
from django.conf import settings

from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.keys.base import KeyRef
from compliance.keys.hosts import messages
from compliance.keys.hosts.messages import AnyRequest, KeyHostResponse
from compliance.keys.pkcs11.backend import Pkcs11Backend, pkcs11_backend
from compliance.keys.pkcs11.module import module_at

logger = logging.getLogger(__name__)


class KeyHostService:
    """Perform requests for both environments, in any thread."""

    def __init__(self) -> None:
        self._module = module_at(settings.PKCS11_MODULE)
        self._backends: dict[Environment, Pkcs11Backend] = {}

    def start(self) -> None:
        """Start the module; after an error the next request tries again."""
        try:
            with self._module.entered():
                return
        except Unavailable as error:
            logger.warning("The module has not started: %s", error.message)

    def close(self) -> None:
        self._module.close()

    @property
    def is_blocked(self) -> bool:
        return any(backend.is_blocked for backend in list(self._backends.values()))

    def respond(self, request: AnyRequest) -> KeyHostResponse:
        """Perform a request; every error becomes a response."""
        try:
            return KeyHostResponse(msgspec.Raw(messages.encode(self._perform(request))))
        except Unavailable as error:
            names = (name for name, kind in messages.ERRORS.items() if isinstance(error, kind))
            return KeyHostResponse(failure=next(names, "unavailable"), retry_after=error.retry_after)
        except ValueError as error:
            return KeyHostResponse(failure=messages.INVALID, message=str(error))
        except Exception:
            logger.exception("%s failed", type(request).__name__)
            return KeyHostResponse(failure="unavailable")

    def _perform(self, request: AnyRequest) -> object:
        backend = self._backend(request.environment)
        match request:
            case messages.SignDigest():
                return backend.sign_digest(request.uri, request.digest, request.algorithm)
            case messages.SignEd25519():
                return backend.sign_ed25519(request.uri, request.message)
            case messages.GenerateKey():
                made = backend.generate_in(
                    request.token, request.bits, label=request.label, keep_public=request.keep_public
                )
                return made.uri, made.spki
            case messages.ReadPublicKey():
                return KeyRef.of(request.uri, backend.public_key(request.uri)).spki
            case messages.DestroyKey():
                backend.destroy(request.uri)
            case messages.ListToken():
                return backend.list_token(request.token, request.label_prefix)
            case messages.CheckTokens():
                (backend.check if request.has_main else backend.check_open)()
            case messages.FindTokens():
                return backend.find_tokens(request.wanted)
            case messages.MakeTokens():
                return backend.make_tokens(request.labels, so_pin=request.so_pin)
            case _:
                return _with_wrapped_keys(backend, request)
        return None

    def _backend(self, environment: Environment) -> Pkcs11Backend:
        backend = self._backends.get(environment)
        return backend or self._backends.setdefault(environment, pkcs11_backend(environment))


def _with_wrapped_keys(backend: Pkcs11Backend, request: messages.Wrapping) -> object:
    match request:
        case messages.MakeWrappingKey():
            return backend.make_wrapping_key(label=request.label)
        case messages.AdoptWrappingKey():
            return backend.adopt_wrapping_key(request.uri)
        case messages.GenerateWrapped():
            return backend.generate_wrapped(request.wrapping, label=request.label)
        case messages.SignUnwrapped():
            return backend.sign_unwrapped(request.key, request.digest, request.algorithm) or b""
        case messages.UnwrapAndSign():
            return backend.unwrap_and_sign(request.wrapped, request.digest, request.algorithm)
        case messages.WrapAnew():
            return backend.wrap_anew(request.wrapped, request.to)
