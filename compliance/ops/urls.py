"""The routes of the console's overview and System page, beside those of its tables."""

from django.contrib import admin
from django.urls import path

from compliance.ops import dashboard
from compliance.ops.system import views

urlpatterns = [
    path("overview/", admin.site.admin_view(dashboard.overview), name="console_overview"),
    path("system/", admin.site.admin_view(views.system_page), name="console_system"),
    path("system/doctor/", admin.site.admin_view(views.doctor_page), name="console_doctor"),
]
