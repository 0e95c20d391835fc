"""Tests of the pages of many rooms."""
