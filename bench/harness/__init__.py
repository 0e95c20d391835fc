"""What every benchmark stands on: a place of its own, servers, load and report."""
