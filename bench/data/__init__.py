"""Rows that several benchmarks make or look for: history, certificates, webhooks, acknowledged events."""
