"""PostgreSQL, one database for each environment, and Redis."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

import environ
import redis
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection
from redis.exceptions import RedisError

from compliance.settings.declaring import Section
from compliance.settings.service import SERVICE_NAME

section = Section("Stores")


def _parsed(name: str, url: str, **facts: Any) -> dict[str, Any]:
    """Return a database's settings from its URL; the fault of a wrong one is noted without the URL."""
    try:
        config: dict[str, Any] = environ.Env.db_url_config(url, **facts)
    except (ValueError, ImproperlyConfigured):
        config = {}
    if url and ("://" not in url or not config.get("NAME")):
        Section.problems.append(f"{name} is no URL of a database")
    return {"USER": "", "PASSWORD": "", "HOST": "", "PORT": "", "NAME": "", **config}


DATABASE_CITUS: bool = section.flag("DATABASE_CITUS", False)
# What each session is set to (times in ms). A pooler in transaction mode shares sessions between clients:
# there the service's role has these as its defaults.
DATABASE_SESSION: dict[str, str] = {
    "statement_timeout": "30000",
    "lock_timeout": "1000",
    "TimeZone": "UTC",
    # Plan a prepared statement once, not for each list of agents; what spans shards has no generic plan.
    "plan_cache_mode": "auto" if DATABASE_CITUS else "force_generic_plan",
}
DATABASE_PREPARED_STATEMENTS: bool = section.flag("DATABASE_PREPARED_STATEMENTS", True)
DATABASE_CONNECT_TIMEOUT: int = 3  # time to open a connection


UNSUPPORTED: Final = {"isolation_level", "pool"}
"""Options of Django's backend that ours does not have."""


def _service(name: str, url: str, *, is_pooled: bool) -> dict[str, Any]:
    config = _parsed(name, url, engine="compliance.stores.postgresql")
    if unsupported := sorted(UNSUPPORTED & config.get("OPTIONS", {}).keys()):
        Section.problems.append(f"{name} has options that are not supported: {', '.join(unsupported)}")
    prepares = DATABASE_PREPARED_STATEMENTS or not is_pooled
    session = {"options": " ".join(f"-c {word}={value}" for word, value in DATABASE_SESSION.items())}
    config["CONN_MAX_AGE"] = None
    config["CONN_HEALTH_CHECKS"] = True
    # A cursor held outside a transaction is a session's.
    config["DISABLE_SERVER_SIDE_CURSORS"] = is_pooled
    config["OPTIONS"] = {
        # Django disables prepared statements by default; the ORM's own cursors never use them.
        "prepare_threshold": 5 if prepares else None,
        **config.get("OPTIONS", {}),
        "connect_timeout": DATABASE_CONNECT_TIMEOUT,
        **({} if is_pooled else session),
        "keepalives_idle": 10,
        "tcp_user_timeout": 10_000,
        # During a failover a balancer may still lead to the old primary, now a standby: its rows are stale.
        "target_session_attrs": "primary",
    }
    return config


_VARIABLES = {"default": ("DATABASE", "live"), "test": ("TEST_DATABASE", "test")}
DATABASES_DIRECT: dict[str, dict[str, Any]] = {
    alias: _service(f"{prefix}_DIRECT_URL", url, is_pooled=False)
    for alias, (prefix, environment) in _VARIABLES.items()
    if (url := section.text(f"{prefix}_DIRECT_URL", "", secret=True))
}
DATABASES: dict[str, dict[str, Any]] = {
    alias: _service(
        f"{prefix}_URL",
        section.text(f"{prefix}_URL", "", secret=True, required=True),
        is_pooled=alias in DATABASES_DIRECT,
    )
    for alias, (prefix, environment) in _VARIABLES.items()
}

DATABASE_AUDITOR: str = section.text(
    "DATABASE_AUDITOR", f"{SERVICE_NAME}_auditor", default_is="<SERVICE_NAME>_auditor"
)


for _alias in _VARIABLES:
    _direct = DATABASES_DIRECT.get(_alias, DATABASES[_alias])
    _options = {
        **_direct["OPTIONS"],
        "assume_role": DATABASE_AUDITOR,
        "options": f"{_direct['OPTIONS']['options']} -c default_transaction_read_only=on",
    }
    _own = {"CONN_MAX_AGE": 0, "OPTIONS": _options, "TEST": {"MIRROR": _alias}}
    DATABASES[f"{_alias}_auditor"] = _direct | _own


# Of the role that owns the tables, for migrations and grants; empty where the service's own role does.
DATABASE_OWNERS: dict[str, dict[str, Any]] = {}
for _alias, (_prefix, _) in _VARIABLES.items():
    _url = section.text(f"{_prefix}_OWNER_URL", "", secret=True, default_is="the service's role")
    _config = _parsed(f"{_prefix}_OWNER_URL", _url) if _url else {}
    DATABASE_OWNERS[_alias] = {name: _config[name] for name in ("USER", "PASSWORD", "HOST", "PORT") if _url}

DATABASE_READER: str = section.text(
    "DATABASE_READER", f"{SERVICE_NAME}_reader", default_is="<SERVICE_NAME>_reader"
)
DATABASE_ROUTERS = ["compliance.core.environments.EnvironmentRouter"]


def _redis(url: str) -> str:
    """Return the address of one Redis server that redis-py and Celery both accept.

    Raises: ValueError, which does not show the address.
    """
    try:
        parts = urlsplit(url)
        redis.Redis.from_url(url).connection_pool.make_connection()  # refuses unknown options, asks nobody
        Connection(url)
        # `urlsplit` lowers the scheme; redis-py takes a database that is no number for the first one.
        is_address = url.startswith(("redis://", "rediss://")) and url.isprintable() and " " not in url
        is_usable = is_address and parts.hostname and re.fullmatch(r"(/\d*)?", parts.path, re.ASCII)
    except (ValueError, TypeError, KeyError, RedisError):
        is_usable = False
    if not is_usable:
        raise ValueError("is no address of one Redis server (redis:// or rediss://…)")
    return url


REDIS_URL: str = section.text("REDIS_URL", "redis://127.0.0.1:6379/0", secret=True, parse=_redis)
BROKER_URL: str = section.text("BROKER_URL", REDIS_URL, secret=True, default_is="REDIS_URL's", parse=_redis)
REDIS_TIMEOUT_SECONDS: float = section.number("REDIS_TIMEOUT_SECONDS", 0.5, unit="seconds", least=0.01)
