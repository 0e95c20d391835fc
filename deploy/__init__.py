"""Files to deploy the service with, and their tests."""
