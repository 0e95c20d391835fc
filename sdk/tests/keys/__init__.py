"""Tests of agentid.keys."""
