"""Reviews of access as a Django app."""

from django.apps import AppConfig


class AccessReviewsConfig(AppConfig):
    name = "delegation.reviews"
    label = "reviews"
    verbose_name = "Access reviews"
