"""Tests of the review inbox."""
