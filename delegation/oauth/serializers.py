"""The forms and answers of the token endpoint, for the API's description."""

from typing import Any

from rest_framework import serializers

from compliance.api.rest.schema import STATUS_TEXT
from delegation.oauth.errors import OAuthErrorCode
from delegation.oauth.exchange import GRANT_TYPE, agent_type


class TokenRequestSerializer(serializers.Serializer[Any]):
    """RFC 8693 §2.1. `client_id` and `client_secret` only where the client authenticates in the body."""

    grant_type = serializers.ChoiceField(choices=[GRANT_TYPE])
    subject_token = serializers.CharField(help_text="On whose behalf: an ID token or a delegation token.")
    subject_token_type = serializers.CharField(help_text="`urn:ietf:params:oauth:token-type:id_token` …")
    actor_token = serializers.CharField(help_text="The agent that acts: its DID or id, or its token.")
    actor_token_type = serializers.CharField(help_text=f"`{agent_type()}` for a DID or id.")
    scope = serializers.CharField(required=False, help_text="Space-delimited actions.")
    audience = serializers.CharField(required=False, help_text="For whom the token is.")
    resource = serializers.CharField(required=False, help_text="The same as an absolute URI (RFC 8707).")
    requested_token_type = serializers.CharField(
        required=False, help_text="`urn:ietf:params:oauth:token-type:access_token` or `…:jwt`."
    )
    dpop_jkt = serializers.CharField(
        required=False, help_text="Thumbprint of the key that the token is bound to, if not the proof's."
    )
    client_id = serializers.CharField(required=False, help_text="The API key's id.")
    client_secret = serializers.CharField(required=False, help_text="The API key.")


class TokenResponseSerializer(serializers.Serializer[Any]):
    """RFC 8693 §2.2.1."""

    access_token = serializers.CharField(help_text="The delegation token; kept nowhere.")
    issued_token_type = serializers.CharField(help_text="As requested; an access token by default.")
    token_type = serializers.ChoiceField(choices=["Bearer", "DPoP"])
    expires_in = serializers.IntegerField(help_text="Seconds.")
    scope = serializers.CharField(allow_blank=True)


class OAuthErrorSerializer(serializers.Serializer[Any]):
    """RFC 6749 §5.2."""

    error = serializers.ChoiceField(choices=[code.value for code in OAuthErrorCode])
    error_description = serializers.CharField(help_text="For people; begins with the reason's name.")


class MetadataSerializer(serializers.Serializer[Any]):
    """RFC 8414 §2."""

    issuer = serializers.CharField()
    token_endpoint = serializers.CharField()
    introspection_endpoint = serializers.CharField()
    revocation_endpoint = serializers.CharField()
    jwks_uri = serializers.CharField()
    response_types_supported = serializers.ListField(child=serializers.CharField())
    grant_types_supported = serializers.ListField(child=serializers.CharField())
    token_endpoint_auth_methods_supported = serializers.ListField(child=serializers.CharField())
    dpop_signing_alg_values_supported = serializers.ListField(child=serializers.CharField())
    introspection_endpoint_auth_methods_supported = serializers.ListField(child=serializers.CharField())
    revocation_endpoint_auth_methods_supported = serializers.ListField(child=serializers.CharField())
    actor_token_types_supported = serializers.ListField(child=serializers.CharField())


OAUTH_STATUS_TEXT = {
    **STATUS_TEXT,
    400: "The request is malformed, or what it presents is refused; `error` says how",
    401: "The client did not authenticate",
    413: "The body is too large",
    415: "The body is not application/x-www-form-urlencoded",
}
