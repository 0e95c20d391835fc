"""Agents' keys as a Django app."""

from django.apps import AppConfig


class AgentKeysConfig(AppConfig):
    name = "delegation.agent_keys"
    label = "agent_keys"
    verbose_name = "Keys of agents"
