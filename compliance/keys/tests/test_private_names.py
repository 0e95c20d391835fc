"""Names that python-pkcs11 does not promise to keep, and that the PKCS#11 backend needs.

If a test here fails after an upgrade, read the message before changing anything else.
"""

import inspect
import os

from pkcs11 import _pkcs11

from compliance.keys.pkcs11.module import _InitialisedLibrary, module_at
from compliance.keys.pkcs11.token import KeyHandle


def test_library_can_be_told_not_to_initialise_the_module() -> None:
    advice = (
        "python-pkcs11's `_pkcs11.lib` no longer takes its initialisation from `initialize()`: without that, "
        "SoftHSM runs without mutexes and threads crash. See compliance/keys/pkcs11/module.py."
    )

    assert hasattr(_pkcs11, "lib"), advice
    assert callable(getattr(_pkcs11.lib, "initialize", None)), advice
    called: list[str] = []

    class Recording(_InitialisedLibrary):
        def initialize(self) -> None:
            called.append("initialize")

    with module_at(os.environ["PKCS11_MODULE"]).entered():
        Recording(os.environ["PKCS11_MODULE"])

    assert called == ["initialize"], advice


def test_keys_can_be_made_of_a_session_and_a_handle() -> None:
    advice = (
        "python-pkcs11's `_pkcs11.SignMixin` no longer signs for an object that has `session`, `handle` and "
        "`key_type`: keys would have to be searched in every session. See compliance/keys/pkcs11/token.py."
    )

    assert inspect.isclass(getattr(_pkcs11, "SignMixin", None)), advice
    key = KeyHandle(None, 7)  # type: ignore[arg-type]
    assert (key.session, key.handle, key.key_type) == (None, 7, None), advice
    assert callable(getattr(key, "_sign", None)), advice
