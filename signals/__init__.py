"""Tell receivers what ends authority: Security Event Tokens by OpenID SSF and CAEP, pushed or polled."""
