"""What gunicorn serves: Django, and the fast path before it."""

from compliance.serving.allocator import spare_memory
from compliance.serving.garbage_collection import spare_garbage_collection
from compliance.wsgi import application as django_application

# isort: split
# Endpoints bring models, which come after Django's start.
from compliance.serving import startup
from compliance.serving.endpoints import ENDPOINTS
from compliance.serving.fast_path import FastPath
from compliance.serving.site import Site
from compliance.tenancy.key_lookup import KeyLookup

startup.load()
spare_garbage_collection()
spare_memory()


def _fast_path() -> FastPath:
    return FastPath(ENDPOINTS, KeyLookup())


application = Site(django_application, fast_path=_fast_path, startup=startup)
