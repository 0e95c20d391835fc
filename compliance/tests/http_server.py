"""A test's HTTP server that stops at once."""

from pytest_httpserver import HTTPServer

POLL_SECONDS = 0.01


class QuickServer(HTTPServer):
    """pytest-httpserver's server; it looks every 10 ms, not every 500, whether to stop."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=POLL_SECONDS)
