"""Remove contents of entries, not their leaves: erasure of personal parts, and retention."""
