"""The console: signing in, single sign-on, sessions, e-mail."""

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL, HTTPS

signing_in = Section("Console")

LOGIN_REDIRECT_URL = "admin:index"
LOGIN_URL = "account_login"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
SESSION_ENGINE = "people.doors.sessions"
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 3600
CSRF_FAILURE_VIEW = "compliance.console.views.refused_form"
CSRF_TRUSTED_ORIGINS = [BASE_URL]

SECOND_FACTOR: str = signing_in.text(
    "SECOND_FACTOR",
    "operators",
    "Who [signs in](console.md#signing-in) with a second factor: `operators`, `everyone` or `nobody`"
    " (`people.W001`).",
)
WEBAUTHN_ORIGIN: str = signing_in.text(
    "WEBAUTHN_ORIGIN",
    "",
    "Scheme, host and port of the console's pages: HTTPS and a host name, or localhost (`people.E002`).",
    default_is="BASE_URL's; on loopback http://localhost:<port>",
)
WEBAUTHN_RP_ID: str = signing_in.text(
    "WEBAUTHN_RP_ID",
    "",
    "Domain that security keys are bound to; changing it ends every key.",
    default_is="the origin's host",
)
SIGN_IN_LINK_HOURS: int = signing_in.integer(
    "SIGN_IN_LINK_HOURS",
    72,
    "How long a [one-time link](console.md#signing-in) works.",
    unit="hours",
    least=1,
    most=8_760,
)
SIGN_IN_FAILURES_PER_ADDRESS: int = signing_in.integer(
    "SIGN_IN_FAILURES_PER_ADDRESS",
    100,
    "Failed sign-ins in an hour after which an address is refused.",
    least=1,
)
EMAIL_HOST: str = signing_in.text(
    "EMAIL_HOST", "", "Server for one-time links, which operators else hand over, and for mail to owners."
)
EMAIL_PORT: int = signing_in.integer("EMAIL_PORT", 587, "Its port.", least=1, most=65_535)
EMAIL_USE_TLS: bool = signing_in.flag("EMAIL_USE_TLS", True, "Whether it is spoken to with STARTTLS.")
EMAIL_HOST_USER: str = signing_in.text("EMAIL_HOST_USER", "", "Account at that server.")
EMAIL_HOST_PASSWORD: str = signing_in.text("EMAIL_HOST_PASSWORD", "", "Its password.", secret=True)
DEFAULT_FROM_EMAIL: str = signing_in.text("EMAIL_FROM", "service@localhost", "Sender of the messages.")
EMAIL_TIMEOUT = 10

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "people_cache",
        # So many that nobody makes the database forget attempts by more of them.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
ACCOUNT_ADAPTER = "people.doors.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_FORMS = {"change_password": "people.doors.key_forms.OwnPasswordForm"}
ACCOUNT_LOGIN_TIMEOUT = 600
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_SESSION_COOKIE_AGE = SESSION_COOKIE_AGE
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_RATE_LIMITS = {
    "login_failed": f"10/m/ip,{SIGN_IN_FAILURES_PER_ADDRESS}/h/ip,5/5m/key,20/1h/key,50/1d/key",
    "sign_on_failed": f"{SIGN_IN_FAILURES_PER_ADDRESS}/h/ip",
}
USERSESSIONS_ADAPTER = "people.doors.adapters.SessionsAdapter"
MFA_ADAPTER = "people.doors.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_FORMS = {
    "add_webauthn": "people.doors.key_forms.AddKeyForm",
    "authenticate_webauthn": "people.doors.key_forms.SignInKeyForm",
    "reauthenticate_webauthn": "people.doors.key_forms.ConfirmKeyForm",
}
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODE_DIGITS = 12
MFA_RECOVERY_CODES_SHOW_ONCE = True

single = Section(
    "Single sign-on",
    "[What it does](console.md#single-sign-on). Register `BASE_URL/admin/live/login/sso/callback/` at the"
    " provider as the redirect URI\nand `BASE_URL/admin/live/login/` as the address after log-out.",
)

OIDC_ISSUER: str = single.text(
    "OIDC_ISSUER",
    "",
    "The OpenID Connect issuer, as in its discovery document; off without issuer, client id and secret.",
)
OIDC_CLIENT_ID: str = single.text("OIDC_CLIENT_ID", "", "This service's client id at the provider.")
OIDC_CLIENT_SECRET: str = single.text(
    "OIDC_CLIENT_SECRET", "", "Its client secret.", secret=True, takes_file=False
)
OIDC_CLIENT_SECRET_FILE: str = single.text(
    "OIDC_CLIENT_SECRET_FILE", "", "File with the client secret, read at each sign-in.", takes_file=False
)
OIDC_LABEL: str = single.text("OIDC_LABEL", "Single sign-on", "The words of the button.")
OIDC_SCOPES: list[str] = single.words("OIDC_SCOPES", ["openid", "profile", "email"], "Scopes asked for.")
OIDC_ALGORITHMS: list[str] = single.words(
    "OIDC_ALGORITHMS",
    ["RS256", "ES256"],
    "Signatures accepted; also RS, PS and ES with 384 and 512, `PS256` and `EdDSA`.",
)
OIDC_ALLOWED_CLAIM: str = single.text(
    "OIDC_ALLOWED_CLAIM",
    "",
    "A claim of the ID token, such as `groups`, that must have one of the allowed values.",
)
OIDC_ALLOWED_VALUES: list[str] = single.words("OIDC_ALLOWED_VALUES", [], "Those values.")
OIDC_CREATE_PEOPLE: bool = single.flag(
    "OIDC_CREATE_PEOPLE",
    False,
    "Whether an unknown account makes a person, without memberships (`people.W003`).",
)
OIDC_ONLY: bool = single.flag(
    "OIDC_ONLY",
    False,
    "Whether nobody signs in with a password; `manage.py sign_in_link NAME --reason TEXT` prints a link that"
    " signs an operator in once.",
)
OIDC_SECOND_FACTOR_AMR: list[str] = single.words(
    "OIDC_SECOND_FACTOR_AMR", [], "Values of `amr` that stand for our second factor, such as `otp,hwk`."
)
OIDC_SECOND_FACTOR_ACR: list[str] = single.words(
    "OIDC_SECOND_FACTOR_ACR", [], "Values of `acr` that do; they are asked for (`acr_values`)."
)
OIDC_CA_FILE: str = single.text(
    "OIDC_CA_FILE", "", "PEM file of roots to check the provider against.", default_is="public roots"
)
OIDC_TIMEOUT_SECONDS: float = single.number(
    "OIDC_TIMEOUT_SECONDS", 5.0, "Time for each request to the provider, in all; at most 30.", unit="seconds"
)
