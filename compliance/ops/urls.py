"""The overview's route in the console."""

from django.contrib import admin
from django.urls import path

from compliance.ops.dashboard import overview

urlpatterns = [path("overview/", admin.site.admin_view(overview), name="console_overview")]
