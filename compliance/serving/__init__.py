"""The web server: HTTP/1.1 connections in an event loop, threads for Django, and lanes past it."""
