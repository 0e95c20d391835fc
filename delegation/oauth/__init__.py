"""The OAuth 2.0 endpoints: form bodies, clients that authenticate by API key, errors of RFC 6749."""
