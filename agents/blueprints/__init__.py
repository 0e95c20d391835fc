"""Blueprints: what agents of a kind have in common, and the limits that each of them may only narrow."""
