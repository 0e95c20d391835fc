"""Tests of the package as others install it."""
