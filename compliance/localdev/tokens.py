"""Initialises SoftHSM tokens through the PKCS#11 C interface; run as a process of its own.

Reads {"labels", "user_pin", "so_pin"} as JSON on stdin, so that no PIN shows in a process list, and
leaves tokens that exist alone. Exits non-zero with one line on stderr when the library refuses.
(PKCS #11 v2.40 §5.5 and §5.6.)
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator

CK_ULONG = ctypes.c_ulong
CKF_RW_SERIAL_SESSION = 0x2 | 0x4
CKU_SO = 0
LABEL_BYTES = 32


class TokenInfo(ctypes.Structure):
    """CK_TOKEN_INFO up to the label; the rest is room for the library to write into."""

    _fields_ = [("label", ctypes.c_char * LABEL_BYTES), ("rest", ctypes.c_ubyte * 512)]


class Refused(Exception):
    """A PKCS#11 function returned something else than CKR_OK."""


class Library:
    """The few functions that make a token."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._call("C_Initialize", None)

    def _call(self, name: str, *arguments: object) -> None:
        function = getattr(self._library, name)
        function.restype = CK_ULONG
        result = function(*arguments)
        if result != 0:
            raise Refused(f"{name} returned 0x{result:08x}")

    def _slots(self) -> list[int]:
        """All slots; the last one is SoftHSM's empty one, where the next token goes."""
        count = CK_ULONG()
        self._call("C_GetSlotList", ctypes.c_ubyte(0), None, ctypes.byref(count))
        slots = (CK_ULONG * count.value)()
        self._call("C_GetSlotList", ctypes.c_ubyte(0), slots, ctypes.byref(count))
        return list(slots[: count.value])

    def labels(self) -> Iterator[tuple[int, str]]:
        """Each slot with its token's label."""
        for slot in self._slots():
            info = TokenInfo()
            self._call("C_GetTokenInfo", CK_ULONG(slot), ctypes.byref(info))
            yield slot, bytes(info)[:LABEL_BYTES].decode("utf-8", "replace").strip(" \0")

    def make(self, label: str, *, user_pin: str, so_pin: str) -> None:
        """Initialise the empty slot as `label` and set its user PIN."""
        so, user = so_pin.encode(), user_pin.encode()
        padded = label.encode().ljust(LABEL_BYTES)
        slot = self._slots()[-1]
        self._call("C_InitToken", CK_ULONG(slot), so, CK_ULONG(len(so)), padded)
        slot = next(number for number, name in self.labels() if name == label)
        session = CK_ULONG()
        flags = CK_ULONG(CKF_RW_SERIAL_SESSION)
        self._call("C_OpenSession", CK_ULONG(slot), flags, None, None, ctypes.byref(session))
        self._call("C_Login", session, CK_ULONG(CKU_SO), so, CK_ULONG(len(so)))
        self._call("C_InitPIN", session, user, CK_ULONG(len(user)))
        self._call("C_CloseSession", session)


def main() -> int:
    order = json.load(sys.stdin)
    try:
        library = Library(os.environ["PKCS11_MODULE"])
        present = {label for _, label in library.labels()}
        for label in order["labels"]:
            if label not in present:
                library.make(label, user_pin=order["user_pin"], so_pin=order["so_pin"])
    except (Refused, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
