"""Alarm budgets: the share of an agent's ordinary events that may be medium or high."""

LEAST_BUDGET, ALARM_BUDGET, MOST_BUDGET = 0.001, 0.01, 0.05
"""The least that a tenant may set, the default, and the most."""
