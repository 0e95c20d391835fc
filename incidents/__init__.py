"""Incidents of agents: what happened, who deals with it, and the clocks of the laws that ask for reports."""
