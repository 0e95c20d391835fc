"""Tests of agentid.command."""
