"""Signature Version 4 of a PUT to Amazon S3 or what speaks its protocol."""

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNED: Final = "content-type;host;x-amz-content-sha256;x-amz-date"


def signed_headers(url: str, body: bytes, *, now: datetime) -> Mapping[str, str]:
    """Return the headers of a signed PUT; the URL has plain characters and no query.

    Source: Amazon S3 API Reference, "Signature Calculations for the Authorization Header".
    """
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/x-ndjson",
        "host": urlsplit(url).netloc,
        "x-amz-content-sha256": sha256(body).hexdigest(),
        "x-amz-date": moment,
    }
    lines = [f"{name}:{value}" for name, value in headers.items()]
    canonical = ["PUT", urlsplit(url).path, "", *lines, "", _SIGNED, headers["x-amz-content-sha256"]]
    scope = f"{moment[:8]}/{settings.STREAM_S3_REGION}/s3/aws4_request"
    digest = sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{settings.STREAM_S3_SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), sha256)
    signature = hmac.digest(key, "\n".join([_ALGORITHM, moment, scope, digest]).encode(), sha256).hex()
    credential = f"{settings.STREAM_S3_KEY_ID}/{scope}"
    said = f"{_ALGORITHM} Credential={credential}, SignedHeaders={_SIGNED}, Signature={signature}"
    return {name.title(): value for name, value in headers.items()} | {"Authorization": said}
