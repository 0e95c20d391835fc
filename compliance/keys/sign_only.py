"""What private keys of `cryptography`'s types have in common when all they do is sign."""

from typing import NoReturn, Self

from cryptography.hazmat.primitives.serialization import Encoding, KeySerializationEncryption, PrivateFormat


class SignsOnly(TypeError):
    """The private half was asked for, or a use other than signing; a defect of the calling code."""


class SignOnly:
    """A mixin: shared rather than copied, and nothing of the private half to be had."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def private_bytes(
        self,
        encoding: Encoding,
        format: PrivateFormat,  # noqa: A002  (the overridden method's name)
        encryption_algorithm: KeySerializationEncryption,
    ) -> NoReturn:
        raise SignsOnly("The private half is not to be had")

    def private_numbers(self) -> NoReturn:
        raise SignsOnly("The private half is not to be had")
