"""Tests of agentid.client."""
