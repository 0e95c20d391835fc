"""What an operation costs each part of the service, and what a larger installation needs of it."""
