"""Delegation tokens: the authority chain from a human to an agent and its sub-agents."""
