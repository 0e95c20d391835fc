"""Back up an installation, lose it, and restore it on an empty machine."""
