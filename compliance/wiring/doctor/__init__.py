"""`doctor`: what an operator would look at, looked at; repairs what can be repaired without a decision."""

from compliance.wiring.doctor.examination import Finding, examine

__all__ = ["Finding", "examine"]
