"""The service's name and address, and Django's own secrets."""

from pathlib import Path

from compliance.settings.declaring import Section

section = Section("The service")

BASE_DIR = Path(__file__).resolve().parent.parent.parent

SERVICE_NAME: str = section.text("SERVICE_NAME", "service")
SERVICE_TITLE: str = section.text("SERVICE_TITLE", "Agent Identity and Compliance Service")
BASE_URL: str = section.text("BASE_URL", "http://127.0.0.1:8000").rstrip("/")
HTTPS: bool = BASE_URL.startswith("https://")
ALLOWED_HOSTS: list[str] = section.words("ALLOWED_HOSTS", ["127.0.0.1", "localhost"])
SECRET_KEY: str = section.text("SECRET_KEY", "", secret=True, required=True)
ENCRYPTION_KEYS: list[str] = section.words("ENCRYPTION_KEYS", [], secret=True, required=True)
DEBUG: bool = section.flag("DEBUG", False)
STATIC_ROOT: str | None = section.text("STATIC_ROOT", None)
