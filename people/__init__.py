"""The people of the console: their identity, and every change to them in the audit log."""
