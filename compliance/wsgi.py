"""The WSGI entry point of the web server."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

from django.core.wsgi import get_wsgi_application

from compliance.api.bodies import with_lengths

application = with_lengths(get_wsgi_application())
