"""Send webhooks: claim deliveries, check addresses, sign, send, record results."""
