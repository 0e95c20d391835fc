"""What a PKCS#11 error means for the caller; nothing of pkcs11 leaves `keys/`."""

from typing import Final

from pkcs11 import exceptions

PIN_REFUSED: Final = (
    exceptions.PinIncorrect,
    exceptions.PinInvalid,
    exceptions.PinLenRange,
    exceptions.PinExpired,
    exceptions.PinLocked,
    exceptions.UserPinNotInitialized,
)
"""Trying again would only lock the token."""

REQUEST_REFUSED: Final = (
    exceptions.ArgumentsBad,
    exceptions.AttributeTypeInvalid,
    exceptions.AttributeValueInvalid,
    exceptions.DataInvalid,
    exceptions.DataLenRange,
    exceptions.FunctionNotSupported,
    exceptions.KeySizeRange,
    exceptions.KeyTypeInconsistent,
    exceptions.MechanismInvalid,
    exceptions.MechanismParamInvalid,
    exceptions.TemplateIncomplete,
    exceptions.TemplateInconsistent,
    exceptions.TokenWriteProtected,
)
"""The token is well and will refuse the same request again."""


class KeyMissing(Exception):
    """A search found no key; the token may be gone, or the key."""
