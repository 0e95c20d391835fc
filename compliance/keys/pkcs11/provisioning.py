"""Initialise tokens: the shards of an installation, and the development stack's SoftHSM tokens.

Run as a program, it reads {"labels", "user_pin", "so_pin"} as JSON from stdin, so that no PIN is in a process
list. Modules without `C_InitToken` need their vendor's tools; `shard_labels()` names the tokens.
"""

import json
import logging
import os
import sys

from pkcs11 import PKCS11Error, TokenFlag

from compliance.core.errors import Unavailable
from compliance.keys.base import LABEL_OCTETS, KeyServiceNotConfigured, KeyServiceUnavailable
from compliance.keys.pkcs11.module import CKR_OK, Pkcs11Module, module_at, startup_lock

logger = logging.getLogger(__name__)


def make_tokens(module: Pkcs11Module, labels: list[str], *, so_pin: str, user_pin: str) -> int:
    """Make those of the tokens that the module lacks, and return how many; none without both PINs.

    Raises `KeyServiceUnavailable`, and `KeyServiceNotConfigured` if the module has no empty slot.
    """
    if not (so_pin and user_pin and labels):
        return 0
    with startup_lock(f"{module.path}#provisioning"):
        module.restart(seen_epoch=module.epoch)
        with module.entered():
            present = module.tokens()
            missing = [label for label in labels if label not in present]
            for label in missing:
                _make(module, label, so_pin=so_pin, user_pin=user_pin)
        if missing:
            module.restart(seen_epoch=module.epoch)
    return len(missing)


def _make(module: Pkcs11Module, label: str, *, so_pin: str, user_pin: str) -> None:
    """Initialise an empty slot as `label` and set its user PIN (PKCS#11 v2.40 §5.5 and §5.6)."""
    try:
        for slot in module.library.get_slots(token_present=True) if module.library else ():
            if not slot.get_token().flags & TokenFlag.TOKEN_INITIALIZED:
                break
        else:
            logger.error("The PKCS#11 module has no empty slot: make the shards with its vendor's tools")
            raise KeyServiceNotConfigured
        pin, padded = so_pin.encode(), label.encode().ljust(LABEL_OCTETS)
        result = module.functions().C_InitToken(slot.slot_id, pin, len(pin), padded)
        if result != CKR_OK:
            logger.error("C_InitToken returned 0x%x", result)
            raise KeyServiceUnavailable
        with slot.get_token().open(rw=True, so_pin=so_pin) as session:
            session.init_pin(user_pin)
    except PKCS11Error as error:
        logger.error("The token %s cannot be made: %s", label, type(error).__name__)
        raise KeyServiceUnavailable from error


def main() -> int:
    logging.basicConfig(format="%(message)s")
    order = json.load(sys.stdin)
    try:
        make_tokens(module_at(os.environ["PKCS11_MODULE"]), **order)
    except Unavailable:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
