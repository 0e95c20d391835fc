"""The web server: HTTP/1.1 connections in an event loop, the fast path, and Django in a process beside it."""
