"""Tests of the deployment files with the programs that read them."""
