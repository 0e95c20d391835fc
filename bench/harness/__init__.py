"""What every benchmark stands on: a place of its own, load, ledger and report."""
