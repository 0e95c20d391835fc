"""What the service answers, as frozen records."""
