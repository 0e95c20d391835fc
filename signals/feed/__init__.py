"""Derive signals from the audit log, and sign them."""
