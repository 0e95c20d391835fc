"""The WSGI entry point of the web server."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
