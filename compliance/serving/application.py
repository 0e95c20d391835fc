"""What gunicorn serves: Django, and the lanes past it."""

from collections.abc import Sequence

from compliance.allocator import spare_memory
from compliance.garbage import spare_garbage_collection
from compliance.wsgi import application as django_application

# isort: split
# Lanes bring models, which come after Django's start.
from certificates.lane import VerifyLane
from compliance import warming
from compliance.api.lanes import Lane
from compliance.serving.site import Site
from events.lane import EventLane
from events.page_lane import PageLane

warming.load()
spare_garbage_collection()
spare_memory()


def _lanes() -> Sequence[Lane]:
    return EventLane(), PageLane(), VerifyLane()


application = Site(django_application, lanes=_lanes, warming=warming)
