"""Parts of delegation as Django apps."""

from django.apps import AppConfig


class IssuersConfig(AppConfig):
    name = "delegation.issuers"
    verbose_name = "Trusted issuers"


class AccessReviewsConfig(AppConfig):
    name = "delegation.reviews"
    verbose_name = "Access reviews"
