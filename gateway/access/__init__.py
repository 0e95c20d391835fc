"""Ask before acting: decisions by OpenID AuthZEN Authorization API 1.0."""
