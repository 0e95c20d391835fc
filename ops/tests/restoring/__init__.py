"""An installation that is backed up, lost, and restored elsewhere."""
