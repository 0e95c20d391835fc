"""Authentication for httpx: requests carry a bound token and a proof of its key."""

from collections.abc import Generator

import httpx

from agentid.keys.dpop import DpopKey


class DpopAuth(httpx.Auth):
    """Adds `DPoP` to each request, and tries once more with the nonce that a server asks for (RFC 9449 §8).

    With a `token`, requests carry it as `Authorization: DPoP`; without one, as to `/oauth/token`, the
    request's own `Authorization` stays.
    """

    def __init__(self, key: DpopKey, token: str | None = None) -> None:
        self._key = key
        self._token = token
        self._nonces: dict[str, str] = {}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        response = yield self._proven(request)
        if self._remember(request, response) and wants_nonce(response):
            self._remember(request, (yield self._proven(request)))

    def _proven(self, request: httpx.Request) -> httpx.Request:
        nonce = self._nonces.get(request.url.netloc.decode())
        url = str(request.url)
        request.headers["DPoP"] = self._key.proof(request.method, url, access_token=self._token, nonce=nonce)
        if self._token is not None:
            request.headers["Authorization"] = f"DPoP {self._token}"
        return request

    def _remember(self, request: httpx.Request, response: httpx.Response) -> bool:
        """Keep the nonce for the next request to this server; whether there is a new one."""
        nonce = response.headers.get("dpop-nonce")
        if nonce is None:
            return False
        self._nonces[request.url.netloc.decode()] = nonce
        return True

    def __repr__(self) -> str:
        return f"DpopAuth({self._key.thumbprint!r})"


def wants_nonce(response: httpx.Response) -> bool:
    """Whether the server refused for want of a nonce: in OAuth's error (§8) or in a challenge (§9).

    The body is not read: a refusal that brings a nonce is enough.
    """
    if response.status_code == 401:
        return "use_dpop_nonce" in response.headers.get("www-authenticate", "")
    return response.status_code == 400
