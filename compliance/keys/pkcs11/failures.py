"""Errors of PKCS#11 modules, by what they call for."""

from typing import Final

from pkcs11 import exceptions

PIN_REFUSED: Final = (
    *(exceptions.PinIncorrect, exceptions.PinInvalid, exceptions.PinLenRange, exceptions.PinExpired),
    *(exceptions.PinLocked, exceptions.UserPinNotInitialized),
)
"""Errors after which another try could lock the token."""

REQUEST_REFUSED: Final = (
    *(exceptions.ArgumentsBad, exceptions.AttributeTypeInvalid, exceptions.AttributeValueInvalid),
    *(exceptions.DataInvalid, exceptions.DataLenRange, exceptions.FunctionNotSupported),
    *(exceptions.KeySizeRange, exceptions.KeyTypeInconsistent),
    *(exceptions.MechanismInvalid, exceptions.MechanismParamInvalid),
    *(exceptions.TemplateIncomplete, exceptions.TemplateInconsistent, exceptions.TokenWriteProtected),
)
"""Errors of a token that serves and will refuse the same request again."""

STALE_HANDLE: Final = (
    *(exceptions.KeyHandleInvalid, exceptions.ObjectHandleInvalid),
    *(exceptions.UnwrappingKeyHandleInvalid, exceptions.WrappingKeyHandleInvalid),
)
"""Another process may have destroyed the key: it is looked up before the module is restarted."""

LOST: Final = (
    *(exceptions.DeviceError, exceptions.DeviceRemoved, exceptions.DeviceMemory, exceptions.HostMemory),
    *(exceptions.SessionHandleInvalid, exceptions.SessionClosed, exceptions.TokenNotPresent),
    *(exceptions.TokenNotRecognised, exceptions.UserNotLoggedIn),
)
"""Errors of a token that has gone away, whatever the wrapped key holds."""
