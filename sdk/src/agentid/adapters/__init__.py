"""Adapters that report what other libraries run; each needs the extra it is named for."""
