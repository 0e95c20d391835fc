"""The command `agentid`: verify things offline, follow events, keep an API key."""
