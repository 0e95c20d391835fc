"""An HTTP server of a test that ends at once."""

from pytest_httpserver import HTTPServer

POLL_SECONDS = 0.01


class QuickServer(HTTPServer):
    """The plugin's server, which looks every half second whether it shall stop; this one every 10 ms."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=POLL_SECONDS)
