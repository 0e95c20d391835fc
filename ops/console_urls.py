"""The routes of the console in one environment; the middleware puts them under the environment's prefix."""

from django.contrib import admin
from django.urls import include, path

from compliance.api import exceptions
from ops import dashboard, system

admin.autodiscover()

# The admin comes last: its last route matches everything.
urlpatterns = [
    path("", include("people.urls")),
    path("overview/", admin.site.admin_view(dashboard.overview), name="console_overview"),
    path("system/", admin.site.admin_view(system.system_page), name="console_system"),
    path("", admin.site.urls),
]

handler400 = exceptions.bad_request
handler403 = exceptions.forbidden
handler404 = exceptions.not_found
handler500 = exceptions.server_error
