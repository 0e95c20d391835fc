"""HTTP/1.1 on a socket: connections, the listener, messages (RFC 9112)."""
