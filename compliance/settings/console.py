"""The console: signing in, single sign-on, sessions, e-mail."""

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL, HTTPS, SERVICE_TITLE

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

SECOND_FACTOR: str = signing_in.text("SECOND_FACTOR", "operators")
WEBAUTHN_ORIGIN: str = signing_in.text(
    "WEBAUTHN_ORIGIN", "", default_is="BASE_URL's; on loopback http://localhost:<port>"
)
WEBAUTHN_RP_ID: str = signing_in.text("WEBAUTHN_RP_ID", "", default_is="the origin's host")
SIGN_IN_LINK_HOURS: int = signing_in.integer("SIGN_IN_LINK_HOURS", 72, unit="hours", least=1, most=8_760)
SIGN_IN_FAILURES_PER_ADDRESS: int = signing_in.integer("SIGN_IN_FAILURES_PER_ADDRESS", 100, least=1)
EMAIL_HOST: str = signing_in.text("EMAIL_HOST", "")
EMAIL_PORT: int = signing_in.integer("EMAIL_PORT", 587, least=1, most=65_535)
EMAIL_USE_TLS: bool = signing_in.flag("EMAIL_USE_TLS", True)
EMAIL_HOST_USER: str = signing_in.text("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD: str = signing_in.text("EMAIL_HOST_PASSWORD", "", secret=True)
DEFAULT_FROM_EMAIL: str = signing_in.text("EMAIL_FROM", "service@localhost")
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
MFA_TOTP_ISSUER = SERVICE_TITLE
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODE_DIGITS = 12
MFA_RECOVERY_CODES_SHOW_ONCE = True

single = Section("Single sign-on")

OIDC_ISSUER: str = single.text("OIDC_ISSUER", "")
OIDC_CLIENT_ID: str = single.text("OIDC_CLIENT_ID", "")
OIDC_CLIENT_SECRET: str = single.text("OIDC_CLIENT_SECRET", "", secret=True, takes_file=False)
OIDC_CLIENT_SECRET_FILE: str = single.text("OIDC_CLIENT_SECRET_FILE", "", takes_file=False)
OIDC_LABEL: str = single.text("OIDC_LABEL", "Single sign-on")
OIDC_SCOPES: list[str] = single.words("OIDC_SCOPES", ["openid", "profile", "email"])
OIDC_ALGORITHMS: list[str] = single.words("OIDC_ALGORITHMS", ["RS256", "ES256"])
OIDC_ALLOWED_CLAIM: str = single.text("OIDC_ALLOWED_CLAIM", "")
OIDC_ALLOWED_VALUES: list[str] = single.words("OIDC_ALLOWED_VALUES", [])
OIDC_CREATE_PEOPLE: bool = single.flag("OIDC_CREATE_PEOPLE", False)
OIDC_ONLY: bool = single.flag("OIDC_ONLY", False)
OIDC_SECOND_FACTOR_AMR: list[str] = single.words("OIDC_SECOND_FACTOR_AMR", [])
OIDC_SECOND_FACTOR_ACR: list[str] = single.words("OIDC_SECOND_FACTOR_ACR", [])
OIDC_CA_FILE: str = single.text("OIDC_CA_FILE", "", default_is="public roots")
OIDC_TIMEOUT_SECONDS: float = single.number("OIDC_TIMEOUT_SECONDS", 5.0, unit="seconds")
