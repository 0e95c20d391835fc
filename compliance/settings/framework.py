"""Configuration of Django: applications, middleware, templates, static files."""

from typing import Any

from compliance.settings.service import BASE_DIR

ROOT_URLCONF = "compliance.urls"
CONSOLE_URLCONF = "ops.console_urls"
WSGI_APPLICATION = "compliance.wsgi.application"
APPEND_SLASH = False
TIME_ZONE = "UTC"
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "people.apps.ConsoleConfig",
    # Before Django's app, whose commands it replaces.
    "people.apps.PeopleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "compliance.api",
    "auditlog",
    "tenancy",
    "webhooks",
    "incidents",
    "agents",
    "certificates",
    "events",
    "events.apps.InboxConfig",
    "events.figures",
    "events.apps.OtlpConfig",
    "events.streaming",
    "delegation",
    "delegation.apps.IssuersConfig",
    "delegation.agent_keys",
    "delegation.stops",
    "delegation.apps.AccessReviewsConfig",
    "signals",
    "gateway",
    "gateway.approvals",
    "reports",
    "ops",
]

MIDDLEWARE = [
    "compliance.observing.middleware.CorrelationMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "compliance.console.middleware.ConsoleMiddleware",
    "delegation.oauth.middleware.OAuthMiddleware",
    "tenancy.admission.AdmissionMiddleware",
    "compliance.api.exceptions.EnvelopeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "tenancy.middleware.EnvironmentMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "people.middleware.SignInPagesMiddleware",
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
WHITENOISE_USE_FINDERS = True

FORMAT_MODULE_PATH = "compliance.console.formats"
