"""As few settings as Django runs on; connections are kept, as the service keeps its own."""

from typing import Any

import environ

env = environ.Env()

SECRET_KEY = env.str("SECRET_KEY")
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "bench.rulers.plain.urls"
USE_TZ = True
INSTALLED_APPS = ["bench.rulers.plain"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
DATABASES: dict[str, Any] = {
    "default": {**env.db_url("DATABASE_URL", engine="django.db.backends.postgresql"), "CONN_MAX_AGE": None}
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
