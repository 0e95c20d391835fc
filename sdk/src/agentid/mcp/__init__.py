"""`agentid mcp`: the service's tools for agents that speak the Model Context Protocol (extra `mcp`)."""
