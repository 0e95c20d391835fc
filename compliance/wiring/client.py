"""The API as the scenario calls it: over real HTTP, with a key."""

from typing import Any

import requests

from compliance.wiring.story import expect


class Api:
    """A tenant's client of the service; every call says which status it expects."""

    def __init__(self, base_url: str, key: str, *, timeout: float = 30.0) -> None:
        self.base_url = base_url
        self.timeout = timeout
        self._with_key = requests.Session()
        self._with_key.trust_env = False
        self._with_key.headers["Authorization"] = f"Bearer {key}"
        self._public = requests.Session()
        self._public.trust_env = False

    def get(self, path: str, *, status: int = 200, **params: Any) -> Any:
        """The JSON body of an authenticated GET."""
        return self._json(self._with_key.get(self._url(path), params=params, timeout=self.timeout), status)

    def post(self, path: str, body: Any = None, *, status: int) -> Any:
        """The JSON body of an authenticated POST."""
        return self._json(self._with_key.post(self._url(path), json=body, timeout=self.timeout), status)

    def delete(self, path: str) -> None:
        """An authenticated DELETE, answered with 204."""
        answer = self._with_key.delete(self._url(path), timeout=self.timeout)
        expect(answer.status_code == 204, f"DELETE {path} answered {answer.status_code}")

    def public_get(self, path: str, *, accept: str = "application/json", **params: Any) -> requests.Response:
        """A GET without credentials, answered with 200."""
        answer = self._public.get(
            self._url(path), params=params, headers={"Accept": accept}, timeout=self.timeout
        )
        expect(answer.status_code == 200, f"GET {path} answered {answer.status_code}: {answer.text[:200]}")
        return answer

    def public_post(self, path: str, body: Any) -> Any:
        """The JSON body of a POST without credentials, answered with 200."""
        return self._json(self._public.post(self._url(path), json=body, timeout=self.timeout), 200)

    def _url(self, path: str) -> str:
        return self.base_url + path

    @staticmethod
    def _json(answer: requests.Response, status: int) -> Any:
        where = f"{answer.request.method} {answer.request.path_url}"
        expect(
            answer.status_code == status,
            f"{where} answered {answer.status_code}, not {status}: {answer.text[:200]}",
        )
        return answer.json()
