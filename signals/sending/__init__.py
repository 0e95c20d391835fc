"""Push Security Event Tokens: claim streams, send in order, record the results."""
