"""Tests of agentid.verify."""
