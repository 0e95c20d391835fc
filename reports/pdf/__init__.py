"""Reports and drafts as PDF."""
