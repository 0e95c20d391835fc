"""An OpenID provider in its own process: django-oauth-toolkit over SQLite, `toolkit.py PORT FOLDER CONSOLE`.

It knows nothing of the service, but the address of the console that it sends people back to. Its people are
`kim` and `ada`; `claims.json` in the folder is what it adds to each ID token.
"""

import json
import sys
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import include, path
from django.utils.module_loading import import_string

PASSWORD = "a password of the provider"
CLIENT_ID, CLIENT_SECRET = "the console", "it's a secret: +/=%"
CALLBACK, SIGNED_OUT = "admin/live/login/sso/callback/", "admin/live/login/"
FORM = """<!doctype html><title>Provider</title><form method="post">{% csrf_token %}
<label>Name <input name="username"></label><label>Secret <input name="password" type="password"></label>
<button>Let me in</button></form>"""
urlpatterns: list[Any] = []


def configure(port: int, folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    loader = ("django.template.loaders.locmem.Loader", {"registration/login.html": FORM})
    settings.configure(
        SECRET_KEY="of the provider",
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["127.0.0.1"],
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "provider.sqlite"}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        # Another name than the console's: browsers send cookies to all ports of a host.
        SESSION_COOKIE_NAME="provider_session",
        CSRF_COOKIE_NAME="provider_csrf",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [],
                "OPTIONS": {"loaders": [loader]},
            }
        ],
        LOGIN_URL="/login/",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}/o",
            "OIDC_RSA_PRIVATE_KEY": pem.decode(),
            "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
            "OIDC_RP_INITIATED_LOGOUT_ALWAYS_PROMPT": False,
            "PKCE_REQUIRED": True,
            "SCOPES": {"openid": "", "profile": "", "email": ""},
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Validator",
        },
    )


def populate(console: str) -> None:
    call_command("migrate", verbosity=0)
    people: Any = import_string("django.contrib.auth.models.User")
    application: Any = import_string("oauth2_provider.models.Application")
    for name in ("kim", "ada"):
        people.objects.create_user(name, password=PASSWORD)
    application.objects.create(
        name="Console",
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        client_type=application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=application.GRANT_AUTHORIZATION_CODE,
        algorithm=application.RS256_ALGORITHM,
        redirect_uris=f"{console}/{CALLBACK}",
        post_logout_redirect_uris=f"{console}/{SIGNED_OUT}",
        skip_authorization=True,
    )


def serve(port: int, folder: Path, console: str) -> None:
    configure(port, folder)
    django.setup()
    # They can be loaded only now.
    login: Any = import_string("django.contrib.auth.views.LoginView")
    standard: Any = import_string("oauth2_provider.oauth2_validators.OAuth2Validator")

    class Validator(standard):
        """Adds the claims that the test wants."""

        oidc_claim_scope = None

        def get_additional_claims(self, request: Any) -> dict[str, Any]:
            wanted = folder / "claims.json"
            more = json.loads(wanted.read_text()) if wanted.exists() else {}
            return {"sub": f"account-of-{request.user.username}", **more}

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    globals()["Validator"] = Validator
    urlpatterns.append(path("login/", login.as_view()))
    urlpatterns.append(path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")))
    populate(console)
    with make_server("127.0.0.1", port, get_wsgi_application(), handler_class=Quiet) as server:
        server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
