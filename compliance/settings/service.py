"""The service's name and address, and Django's own secrets."""

from pathlib import Path

from compliance.settings.declaring import Section

section = Section("The service")

BASE_DIR = Path(__file__).resolve().parent.parent.parent

SERVICE_NAME: str = section.text(
    "SERVICE_NAME", "service", "Prefix of keys, header names and the DID method."
)
SERVICE_TITLE: str = section.text(
    "SERVICE_TITLE", "Agent Identity and Compliance Service", "Title of the console and the API description."
)
BASE_URL: str = section.text(
    "BASE_URL", "http://127.0.0.1:8000", "Public address, written into certificates."
).rstrip("/")
HTTPS: bool = BASE_URL.startswith("https://")
ALLOWED_HOSTS: list[str] = section.words(
    "ALLOWED_HOSTS",
    ["127.0.0.1", "localhost"],
    "Host names served, those that health checks and Prometheus ask for (`localhost`) among them.",
)
SECRET_KEY: str = section.text(
    "SECRET_KEY",
    "",
    "Django's secret, which signs sessions and the console's forms.",
    secret=True,
    required=True,
)
ENCRYPTION_KEYS: list[str] = section.words(
    "ENCRYPTION_KEYS",
    [],
    "Fernet keys of webhook secrets and kept answers, newest first: the first encrypts, all decrypt.",
    secret=True,
    required=True,
)
DEBUG: bool = section.flag(
    "DEBUG", False, "Whether errors show their tracebacks to callers; for development only."
)
STATIC_ROOT: str | None = section.text(
    "STATIC_ROOT",
    None,
    "Target of `collectstatic`; without it static files are served from the packages, and nothing is"
    " collected.",
)
