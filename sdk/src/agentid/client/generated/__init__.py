"""What the OpenAPI description yields."""
