"""Secrets and signatures, by the published vectors."""

import base64
import hashlib
import hmac

from webhooks.sending import signature


def test_signature_matches_the_published_vector() -> None:
    # GitHub, "Validating webhook deliveries".
    found = signature.sign(b"Hello, World!", "It's a Secret to Everybody")

    assert found == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def test_standard_signature_matches_the_published_vector() -> None:
    # Standard Webhooks, reference libraries' tests.
    found = signature.sign_standard(
        b'{"test": 2432232314}',
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
    )

    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_signature_is_keyed_with_the_whole_secret_string() -> None:
    secret = signature.new_secret()

    found = signature.sign(b"{}", secret)

    assert found == "sha256=" + hmac.digest(secret.encode(), b"{}", hashlib.sha256).hex()


def test_secret_carries_256_bits_behind_its_prefix() -> None:
    secret = signature.new_secret()

    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert secret != signature.new_secret()
    assert signature.hint_of(secret) == secret[-4:]


def test_header_takes_the_service_name() -> None:
    assert signature.header_name("service") == "X-Service-Signature"
    assert signature.header_name("acme") == "X-Acme-Signature"
