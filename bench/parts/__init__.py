"""The parts of the ingest benchmark, each of which can be run alone."""
