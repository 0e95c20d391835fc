"""What the parsers of `cryptography` raise, some of them only when a part is looked at."""

from collections.abc import Iterator
from contextlib import contextmanager

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from agentid.reasons import NotValid, Reason


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Raise NotValid for what cannot be read; also a decorator."""
    try:
        yield
    except UnsupportedAlgorithm:
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, what) from None
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise NotValid(Reason.MALFORMED, f"{what} that cannot be read") from None
