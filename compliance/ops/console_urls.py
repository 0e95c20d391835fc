"""The routes of the console in one environment; the middleware puts them under the environment's prefix."""

from django.contrib import admin
from django.urls import include, path

from compliance.api import exceptions
from compliance.console.secrets import secret_route

admin.autodiscover()

# The admin comes last: its last route matches everything.
urlpatterns = [secret_route(), path("", include("compliance.ops.urls")), path("", admin.site.urls)]

handler400 = exceptions.bad_request
handler403 = exceptions.forbidden
handler404 = exceptions.not_found
handler500 = exceptions.server_error
