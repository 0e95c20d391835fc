"""The routes of the System page, beside those of the console's tables."""

from django.contrib import admin
from django.urls import path

from compliance.ops.system import views

urlpatterns = [
    path("system/", admin.site.admin_view(views.system_page), name="console_system"),
    path("system/doctor/", admin.site.admin_view(views.doctor_page), name="console_doctor"),
]
