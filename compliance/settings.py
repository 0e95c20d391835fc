"""The settings, read from environment variables; docs/operations.md explains each."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import environ

from compliance.api.rest import framework_settings
from compliance.console.unfold_settings import unfold_settings

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parent.parent
SERVICE_NAME: str = env.str("SERVICE_NAME", default="service")
SERVICE_TITLE: str = env.str("SERVICE_TITLE", default="Agent Identity and Compliance Service")
BASE_URL: str = env.str("BASE_URL", default="http://127.0.0.1:8000").rstrip("/")

# --- Django ---------------------------------------------------------------------------------------

SECRET_KEY: str = env.str("SECRET_KEY")
# Fernet keys for webhook secrets: the first encrypts, all decrypt.
ENCRYPTION_KEYS: list[str] = env.list("ENCRYPTION_KEYS")
DEBUG: bool = env.bool("DEBUG", default=False)
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost"])
ROOT_URLCONF = "compliance.urls"
CONSOLE_URLCONF = "compliance.ops.console_urls"
WSGI_APPLICATION = "compliance.wsgi.application"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "compliance.people.apps.ConsoleConfig",
    # Before Django's app, whose commands it replaces.
    "compliance.people.apps.PeopleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "compliance.api",
    "auditlog",
    "compliance.tenancy",
    "webhooks",
    "compliance.incidents",
    "agents",
    "certificates",
    "events",
    "events.inbox",
    "events.figures",
    "delegation",
    "delegation.issuers",
    "compliance.signals",
    "compliance.gateway",
    "compliance.reports",
    "compliance.ops",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "compliance.console.middleware.ConsoleMiddleware",
    "delegation.oauth.middleware.OAuthMiddleware",
    "compliance.tenancy.admission.AdmissionMiddleware",
    "compliance.api.middleware.EnvelopeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "compliance.tenancy.middleware.EnvironmentMiddleware",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "compliance" / "static"]
# Without STATIC_ROOT, static files are served from the packages, and `collectstatic` is not needed.
STATIC_ROOT: str | None = env.str("STATIC_ROOT", default=None)
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# --- Databases: one per environment ---------------------------------------------------------------


def _database(variable: str) -> dict[str, Any]:
    config: dict[str, Any] = env.db_url(variable, engine="compliance.stores.postgresql")
    config["CONN_MAX_AGE"] = None
    config["CONN_HEALTH_CHECKS"] = True
    config["OPTIONS"] = {
        # Django disables prepared statements by default; the ORM's own cursors never use them.
        "prepare_threshold": 5,
        **config.get("OPTIONS", {}),
        "connect_timeout": env.int("DATABASE_CONNECT_TIMEOUT", default=3),
        "options": "-c statement_timeout=30000 -c lock_timeout=10000 -c timezone=UTC"
        # Plan a prepared statement once, not for each list of agents.
        " -c plan_cache_mode=force_generic_plan",
        "keepalives_idle": 10,
        "tcp_user_timeout": 10_000,
    }
    return config


DATABASES = {"default": _database("DATABASE_URL"), "test": _database("TEST_DATABASE_URL")}

# A role that may read the audit log and nothing else; the console's connections to the log assume it.
DATABASE_AUDITOR: str = env.str("DATABASE_AUDITOR", default=f"{SERVICE_NAME}_auditor")


def _auditor(alias: str) -> dict[str, Any]:
    service = DATABASES[alias]
    options = {
        **service["OPTIONS"],
        "assume_role": DATABASE_AUDITOR,
        "options": f"{service['OPTIONS']['options']} -c default_transaction_read_only=on",
    }
    return {**service, "CONN_MAX_AGE": 0, "OPTIONS": options, "TEST": {"MIRROR": alias}}


DATABASES |= {f"{alias}_auditor": _auditor(alias) for alias in ("default", "test")}


def _owner(variable: str) -> dict[str, Any]:
    """Credentials of the role that owns the tables; empty where DATABASE_URL's role owns them itself."""
    if not env.str(variable, default=""):
        return {}
    config: dict[str, Any] = env.db_url(variable)
    return {name: config[name] for name in ("USER", "PASSWORD", "HOST", "PORT")}


# For migrations and grants only: a process that serves should not have these credentials.
DATABASE_OWNERS = {"default": _owner("DATABASE_OWNER_URL"), "test": _owner("TEST_DATABASE_OWNER_URL")}
# A role that may read all but secrets; `migrate` grants its privileges if it exists.
DATABASE_READER: str = env.str("DATABASE_READER", default=f"{SERVICE_NAME}_reader")
DATABASE_ROUTERS = ["compliance.core.environments.EnvironmentRouter"]

# --- Redis: rate limits, scorer state, task messages ----------------------------------------

REDIS_URL: str = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
REDIS_TIMEOUT_SECONDS: float = env.float("REDIS_TIMEOUT_SECONDS", default=0.5)

# --- HSM (PKCS#11): one main token per environment, and shards for agents' keys --------------------

PKCS11_MODULE: str = env.str("PKCS11_MODULE", default="")
PKCS11_TOKENS: dict[str, dict[str, str]] = {
    "live": {
        "label": env.str("PKCS11_LIVE_TOKEN", default=f"{SERVICE_NAME}-live"),
        "pin": env.str("PKCS11_LIVE_PIN", default=""),
    },
    "test": {
        "label": env.str("PKCS11_TEST_TOKEN", default=f"{SERVICE_NAME}-test"),
        "pin": env.str("PKCS11_TEST_PIN", default=""),
    },
}

# Agents' keys are spread over so many tokens, labelled `<label>-00` and up, beside each environment's own.
# Those that exist are used; `ca_init` makes the others if PKCS11_SO_PIN is given.
PKCS11_SHARDS: int = env.int("PKCS11_SHARDS", default=64)
PKCS11_SO_PIN: str = env.str("PKCS11_SO_PIN", default="")
# Number of key hosts (`manage.py key_host`) that open the module for all others; 0: every process opens it.
PKCS11_HOSTS: int = env.int("PKCS11_HOSTS", default=0)
# The folder of their sockets, which only the service's user may enter.
PKCS11_HOST_FOLDER: str = env.str("PKCS11_HOST_FOLDER", default="/run/service-keys")
# SOFTHSM2_CONF of each host, if each has tokens of its own.
PKCS11_HOST_CONFS: list[str] = env.list("PKCS11_HOST_CONFS", default=[])

# --- Certificates ---------------------------------------------------------------------------------

CERTIFICATE_VALIDITY = timedelta(days=env.int("CERTIFICATE_VALIDITY_DAYS", default=365))
HIGH_RISK_CERTIFICATE_VALIDITY = timedelta(days=env.int("HIGH_RISK_CERTIFICATE_VALIDITY_DAYS", default=30))
# The arc of the identity extension and the policy. Set your own private enterprise number before issuing to
# outsiders (1.3.6.1.4.1.32473 is reserved for documentation, RFC 5612).
OID_ARC: str = env.str("OID_ARC", default="1.3.6.1.4.1.32473.1")
# Keys generated in advance for agents, in each environment; 0: generate each when it is needed.
KEY_POOL_SIZE: int = env.int("KEY_POOL_SIZE", default=8)
# The size for one environment, if it differs.
KEY_POOL_SIZES: dict[str, int | None] = {
    "live": env.int("KEY_POOL_SIZE_LIVE", default=None),
    "test": env.int("KEY_POOL_SIZE_TEST", default=None),
}
# Partitioned CRLs of a new issuing CA, besides the full one; 0: the full one only.
CRL_SHARDS: int = env.int("CRL_SHARDS", default=16)
CRL_VALIDITY = timedelta(hours=env.int("CRL_VALIDITY_HOURS", default=24))

# --- Audit log --------------------------------------------------------------------------------------

# The name of the log, under which its checkpoints are signed (the sandbox's ends in `/test`). The log gets it
# with its first key, and keeps it.
AUDIT_LOG_ORIGIN: str = env.str("AUDIT_LOG_ORIGIN", default=f"{BASE_URL.partition('://')[2]}/v1/audit-log")

# --- Delegation tokens ------------------------------------------------------------------------------

# The `iss` of tokens. Tokens of another issuer are refused: keep it when the address changes.
TOKEN_ISSUER: str = env.str("TOKEN_ISSUER", default=BASE_URL).rstrip("/")
# The time after which the next key takes over.
TOKEN_KEY_LIFETIME = timedelta(days=env.int("TOKEN_KEY_LIFETIME_DAYS", default=90))
# Whether DPoP proofs count while Redis, which tells used ones, can't be reached: refuse (503) or accept.
DPOP_WITHOUT_REPLAY_STORE: str = env.str("DPOP_WITHOUT_REPLAY_STORE", default="refuse")
# Whether a proof sent to obtain a token must carry a nonce of this service.
DPOP_NONCE_REQUIRED: bool = env.bool("DPOP_NONCE_REQUIRED", default=False)

# Where the keys of tenants' trusted issuers may be fetched from, beyond https at public addresses.
TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES: bool = env.bool(
    "TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES", default=False
)
TRUSTED_ISSUER_ALLOW_HTTP: bool = env.bool("TRUSTED_ISSUER_ALLOW_HTTP", default=False)
# A PEM file of root certificates to check those addresses against, instead of the public ones.
TRUSTED_ISSUER_CA_FILE: str = env.str("TRUSTED_ISSUER_CA_FILE", default="")
TRUSTED_ISSUER_TIMEOUT_SECONDS: float = 5.0

# --- Risk -----------------------------------------------------------------------------------------

HIGH_RISK_STRIKES: int = env.int("HIGH_RISK_STRIKES", default=3)
HIGH_RISK_WINDOW = timedelta(minutes=env.int("HIGH_RISK_WINDOW_MINUTES", default=15))
RISK_WINDOW = timedelta(days=30)

# --- Audit log --------------------------------------------------------------------------------------

# A C2SP tlog-policy file with the witnesses that cosign checkpoints, and their quorum. Empty: no witnesses.
AUDIT_WITNESS_POLICY: str = env.str("AUDIT_WITNESS_POLICY", default="")
# A PEM file of root certificates to check witnesses against, instead of the public ones.
AUDIT_WITNESS_CA_FILE: str = env.str("AUDIT_WITNESS_CA_FILE", default="")
# How long audit entries keep their contents: five years.
AUDIT_RETENTION_DAYS: int = env.int("AUDIT_RETENTION_DAYS", default=1827)

# --- Incidents --------------------------------------------------------------------------------------

# The laws whose reporting clocks run: ai_act, dora.
INCIDENT_REGIMES: list[str] = env.list("INCIDENT_REGIMES", default=["ai_act", "dora"])

# --- Storage of events ------------------------------------------------------------------------------

# A partition of events is archived and dropped once all of its events are older: five years.
EVENT_RETENTION_DAYS: int = env.int("EVENT_RETENTION_DAYS", default=1827)
# The folder of the archives, which the operator makes. Without it no event is dropped.
EVENT_ARCHIVE_DIR: str = env.str("EVENT_ARCHIVE_DIR", default=f"/var/lib/{SERVICE_NAME}/archive")
# For how long a partition restored from its archive is not dropped again.
EVENT_RESTORED_DAYS: int = env.int("EVENT_RESTORED_DAYS", default=30)
# The span of a new partition of the events table: day, week or month.
EVENT_PARTITION: str = env.str("EVENT_PARTITION", default="month")

# --- Verification of the audit log ------------------------------------------------------------------

# Where audit_verify keeps the checkpoint it verified last; no role of a database should write there.
AUDIT_VERIFIED_FILE: str = env.str("AUDIT_VERIFIED_FILE", default="")

# --- Webhooks -------------------------------------------------------------------------------------

WEBHOOK_TIMEOUT_SECONDS: float = 30.0
WEBHOOK_ALLOW_PRIVATE_ADDRESSES: bool = env.bool("WEBHOOK_ALLOW_PRIVATE_ADDRESSES", default=False)
WEBHOOK_ALLOW_HTTP: bool = env.bool("WEBHOOK_ALLOW_HTTP", default=False)
# A PEM file of root certificates to check receivers against, instead of the public ones.
WEBHOOK_CA_FILE: str = env.str("WEBHOOK_CA_FILE", default="")
# Concurrent requests of a sender process in each environment.
WEBHOOK_SENDER_THREADS: int = env.int("WEBHOOK_SENDER_THREADS", default=512)
# How often a sender polls for due deliveries of which no message came.
WEBHOOK_POLL_SECONDS: float = env.float("WEBHOOK_POLL_SECONDS", default=0.25)
# Concurrent requests to one endpoint, over all senders, once it has answered quickly; until then one.
WEBHOOK_SLOTS_PER_ENDPOINT: int = env.int("WEBHOOK_SLOTS_PER_ENDPOINT", default=20)
# Concurrent requests to all slow endpoints of an environment.
WEBHOOK_SLOW_SLOTS: int = env.int("WEBHOOK_SLOW_SLOTS", default=32)
# A webhook is disabled after so many failed deliveries in a row that span so many seconds.
WEBHOOK_DISABLE_AFTER_DELIVERIES: int = env.int("WEBHOOK_DISABLE_AFTER_DELIVERIES", default=100)
WEBHOOK_DISABLE_AFTER_SECONDS: int = env.int("WEBHOOK_DISABLE_AFTER_SECONDS", default=86_400)
# The time for which a rotated secret still signs beside the new one.
WEBHOOK_SECRET_OVERLAP_SECONDS: int = env.int("WEBHOOK_SECRET_OVERLAP_SECONDS", default=86_400)
WEBHOOKS_PER_TENANT: int = env.int("WEBHOOKS_PER_TENANT", default=200)

# --- Signals --------------------------------------------------------------------------------------

SIGNALS_TIMEOUT_SECONDS: float = 10.0
# Streams that a sender process pushes to at once in each environment; at most half to failing receivers.
SIGNALS_SENDER_THREADS: int = env.int("SIGNALS_SENDER_THREADS", default=32)
# How often a sender looks for signals of which no message came.
SIGNALS_POLL_SECONDS: float = env.float("SIGNALS_POLL_SECONDS", default=0.5)
# How long a poll (RFC 8936) waits for the first signal, and how many may wait in one web process.
SIGNALS_LONG_POLL_SECONDS: float = env.float("SIGNALS_LONG_POLL_SECONDS", default=5.0)
SIGNALS_LONG_POLLS: int = env.int("SIGNALS_LONG_POLLS", default=2)
# A push stream is paused after its receiver has failed for so long.
SIGNALS_PAUSE_AFTER_SECONDS: int = env.int("SIGNALS_PAUSE_AFTER_SECONDS", default=86_400)
# A stream in which more signals wait than this is disabled.
SIGNALS_MOST_WAITING: int = env.int("SIGNALS_MOST_WAITING", default=10_000)
SIGNAL_STREAMS_PER_TENANT: int = env.int("SIGNAL_STREAMS_PER_TENANT", default=20)

# --- Rate limits: requests per window of 60 seconds -----------------------------------------------

RATE_LIMITS: dict[str, int] = {
    "verify": env.int("RATE_LIMIT_VERIFY", default=100),
    "public": env.int("RATE_LIMIT_PUBLIC", default=6_000),
    "key": env.int("RATE_LIMIT_KEY", default=6_000),
    "events": env.int("RATE_LIMIT_EVENTS", default=120_000),
    "gateway": env.int("RATE_LIMIT_GATEWAY", default=120_000),
    "unauthenticated": env.int("RATE_LIMIT_UNAUTHENTICATED", default=600),
    "sign_in": env.int("RATE_LIMIT_SIGN_IN", default=20),
    # Failed sign-ins written to the audit log, of each account.
    "sign_in_entries": env.int("RATE_LIMIT_SIGN_IN_ENTRIES", default=10),
}
RATE_LIMIT_WINDOW_SECONDS: int = 60
# Addresses or networks of proxies whose X-Forwarded-For is trusted.
TRUSTED_PROXIES: list[str] = env.list("TRUSTED_PROXIES", default=[])

# --- REST framework -------------------------------------------------------------------------------

REST_FRAMEWORK = framework_settings.REST_FRAMEWORK
SPECTACULAR_SETTINGS = framework_settings.spectacular_settings(title=SERVICE_TITLE, base_url=BASE_URL)

# --- Celery (PostgreSQL holds all work to do; a message only tells of it early) -------------------

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 2.0,
    "socket_connect_timeout": 1.0,
    # One try: a request would wait through the pauses between several. A worker retries for ever.
    "max_retries": 0,
    "global_keyprefix": f"{SERVICE_NAME}:celery:",
    "visibility_timeout": 3600,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TIMEZONE = "UTC"

# --- Console --------------------------------------------------------------------------------------

UNFOLD: dict[str, Any] = unfold_settings(SERVICE_TITLE)
FORMAT_MODULE_PATH = "compliance.console.formats"
LOGIN_REDIRECT_URL = "admin:index"
LOGIN_URL = "admin:login"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
# Who signs in with a second factor: operators, everyone or nobody.
SECOND_FACTOR: str = env.str("SECOND_FACTOR", default="operators")
# The origin of the console's pages and the domain that security keys are bound to; empty takes BASE_URL's.
WEBAUTHN_ORIGIN: str = env.str("WEBAUTHN_ORIGIN", default="")
WEBAUTHN_RP_ID: str = env.str("WEBAUTHN_RP_ID", default="")
# For how long a one-time link works that sets a password.
SIGN_IN_LINK_HOURS: int = env.int("SIGN_IN_LINK_HOURS", default=72)
# After so many failed sign-ins within an hour an address is refused for the rest of it.
SIGN_IN_FAILURES_PER_ADDRESS: int = env.int("SIGN_IN_FAILURES_PER_ADDRESS", default=100)
# Single sign-on by OpenID Connect: off without issuer, client id and client secret (itself, or in a file).
OIDC_ISSUER: str = env.str("OIDC_ISSUER", default="")
OIDC_CLIENT_ID: str = env.str("OIDC_CLIENT_ID", default="")
OIDC_CLIENT_SECRET: str = env.str("OIDC_CLIENT_SECRET", default="")
OIDC_CLIENT_SECRET_FILE: str = env.str("OIDC_CLIENT_SECRET_FILE", default="")
OIDC_SCOPES: list[str] = env.list("OIDC_SCOPES", default=["openid", "profile", "email"])
# The words of the button.
OIDC_LABEL: str = env.str("OIDC_LABEL", default="Single sign-on")
OIDC_ALGORITHMS: list[str] = env.list("OIDC_ALGORITHMS", default=["RS256", "ES256"])
# A claim that must have one of these values, as of a group; empty: every account of the provider will do.
OIDC_ALLOWED_CLAIM: str = env.str("OIDC_ALLOWED_CLAIM", default="")
OIDC_ALLOWED_VALUES: list[str] = env.list("OIDC_ALLOWED_VALUES", default=[])
# Whether an unknown account makes a new person, without any membership.
OIDC_CREATE_PEOPLE: bool = env.bool("OIDC_CREATE_PEOPLE", default=False)
# Whether nobody signs in with a password.
OIDC_ONLY: bool = env.bool("OIDC_ONLY", default=False)
# Values of `amr` or `acr` that stand for our second factor; empty: none does.
OIDC_SECOND_FACTOR_AMR: list[str] = env.list("OIDC_SECOND_FACTOR_AMR", default=[])
OIDC_SECOND_FACTOR_ACR: list[str] = env.list("OIDC_SECOND_FACTOR_ACR", default=[])
# A PEM file of root certificates to check the provider against, instead of the public ones.
OIDC_CA_FILE: str = env.str("OIDC_CA_FILE", default="")
OIDC_TIMEOUT_SECONDS: float = env.float("OIDC_TIMEOUT_SECONDS", default=5.0)
# Without a host no e-mail is sent: operators hand links over themselves.
EMAIL_HOST: str = env.str("EMAIL_HOST", default="")
EMAIL_PORT: int = env.int("EMAIL_PORT", default=587)
EMAIL_HOST_USER: str = env.str("EMAIL_HOST_USER", default="")
EMAIL_HOST_PASSWORD: str = env.str("EMAIL_HOST_PASSWORD", default="")
EMAIL_USE_TLS: bool = env.bool("EMAIL_USE_TLS", default=True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL: str = env.str("EMAIL_FROM", default="service@localhost")
HTTPS: bool = BASE_URL.startswith("https://")
SESSION_ENGINE = "compliance.people.doors.session_store"
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 3600
CSRF_TRUSTED_ORIGINS = [BASE_URL]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- Logging: ids and statuses; never keys, tokens or payloads ------------------------------------

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "environment": {"()": "compliance.core.logs.EnvironmentFilter"},
        "client_faults": {"()": "compliance.core.logs.ClientFaultFilter"},
    },
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s [%(environment)s] %(message)s"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["client_faults", "environment"],
        }
    },
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "celery": {"level": "WARNING"},
        # It logs malformed answers with the receiver's URL, which may carry a token.
        "urllib3": {"level": "ERROR"},
    },
}
