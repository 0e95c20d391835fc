"""Benchmarks: how fast the service is, beside rulers measured in the same run."""
