"""What gunicorn serves: Django, and the fast path before it."""

from compliance.serving.server import Site
from compliance.serving.tuning import spare_garbage_collection, spare_memory
from compliance.wsgi import application as django_application

# isort: split
# Endpoints bring models, which come after Django's start.
from django.urls import get_resolver

from compliance.api.rest import description
from compliance.serving.endpoints import ENDPOINTS
from compliance.serving.fast_path import FastPath
from tenancy.key_lookup import KeyLookup

_ = get_resolver().reverse_dict  # imports every view
description.draw()
spare_garbage_collection()
spare_memory()
application = Site(django_application, lambda: FastPath(ENDPOINTS, KeyLookup()))
