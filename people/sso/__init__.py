"""Single sign-on by OpenID Connect: people sign in with an account of an identity provider."""
