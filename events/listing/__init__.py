"""Read events by page."""
