"""Decisions for gateways: whether a request of an agent may pass, by routes that tenants set up."""
