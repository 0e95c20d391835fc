"""Delegation as a Django app."""

from django.apps import AppConfig
from django.core.checks import register

from delegation.proofs.checks import check_without_replay_store


class DelegationConfig(AppConfig):
    name = "delegation"
    verbose_name = "Delegation"

    def ready(self) -> None:
        register(check_without_replay_store)
