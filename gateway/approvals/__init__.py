"""Approvals: a person decides on one act of an agent, and a receipt lets the agent do it once."""
