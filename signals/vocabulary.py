"""Names of OpenID SSF 1.0 and CAEP 1.0 that this transmitter uses."""

from typing import Final

from django.db import models

SET_TYPE: Final = "secevent+jwt"
"""`typ` of a Security Event Token (RFC 8417 §2.3)."""
SPEC_VERSION: Final = "1_0"
_CAEP: Final = "https://schemas.openid.net/secevent/caep/event-type"
_SSF: Final = "https://schemas.openid.net/secevent/ssf/event-type"


class SignalEvent(models.TextChoices):
    """Event types; their URIs are the names in a token's `events`."""

    SESSION_REVOKED = f"{_CAEP}/session-revoked"
    CREDENTIAL_CHANGE = f"{_CAEP}/credential-change"
    VERIFICATION = f"{_SSF}/verification"
    STREAM_UPDATED = f"{_SSF}/stream-updated"


SUPPORTED_EVENTS: Final = (SignalEvent.SESSION_REVOKED.value, SignalEvent.CREDENTIAL_CHANGE.value)
"""What a receiver chooses among; the two of SSF itself are sent whatever it chose."""


class DeliveryMethod(models.TextChoices):
    PUSH = "urn:ietf:rfc:8935"
    POLL = "urn:ietf:rfc:8936"


class StreamStatus(models.TextChoices):
    """`paused` keeps what happens for later; `disabled` does not."""

    ENABLED = "enabled"
    PAUSED = "paused"
    DISABLED = "disabled"
