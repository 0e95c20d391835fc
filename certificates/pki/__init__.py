"""X.509 as pure functions: certificates, names, extensions, serial numbers, reasons, signatures."""

from datetime import timedelta
from typing import Final

MAX_LIFETIME: Final = timedelta(days=365)
