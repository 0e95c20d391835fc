"""See what the service does: ids of requests, log lines, metrics."""
