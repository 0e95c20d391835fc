"""The System page of the console: how the parts of the service are, for its operators."""
