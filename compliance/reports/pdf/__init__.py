"""A report's document as PDF."""

from compliance.reports.pdf.rendering import render

__all__ = ["render"]
