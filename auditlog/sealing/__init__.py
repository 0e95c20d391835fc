"""The stored tree of each environment: seal entries into it, sign its head, read its tiles."""
