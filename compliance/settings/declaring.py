"""Declarations of settings, each with its type, default, unit and purpose, and read from the environment."""

import errno
import math
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
D = TypeVar("D")

TRUE = ("1", "true", "yes", "on", "y", "ok")
CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@")
"""Scheme and credentials of a URL, which are not shown, whatever setting it is."""
FALSE = ("0", "false", "no", "off", "n", "")

Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Variable:
    """An environment variable of the service.

    `default` is empty where there is none. `source` is where the value came from: `environment`, `file` or
    `default`. `value` is the value as text; `set` or nothing for a secret. `bounds` describes the numbers
    accepted.
    """

    name: str
    kind: str
    default: str
    unit: str
    is_secret: bool
    is_required: bool
    takes_file: bool
    source: str
    value: str
    bounds: str


class Section:
    """A group of settings: one heading of docs/settings.md, which says what each is for.

    Each method declares one variable, reads it from the environment, or from the file that `<name>_FILE`
    names, and returns its value. What cannot be read is noted in `problems`, by name and reason, never by
    value; `refuse_problems()` raises them all at once.
    """

    every: list["Section"] = []
    problems: list[str] = []

    def __init__(self, title: str) -> None:
        self.title = title
        self.variables: list[Variable] = []
        Section.every.append(self)

    def text(self, name: str, default: D, *, parse: Callable[[str], str] = str, **facts: Any) -> str | D:
        """Declare a text; `parse` returns it or raises a ValueError that does not show it."""
        return self._declare(name, "text", parse, default, **facts)

    def flag(self, name: str, default: D, **facts: Any) -> bool | D:
        return self._declare(name, "flag", _flag, default, **facts)

    def integer(self, name: str, default: D, **facts: Any) -> int | D:
        return self._declare(name, "integer", _integer, default, **facts)

    def number(self, name: str, default: float, **facts: Any) -> float:
        """Declare a number that may have a fraction."""
        return self._declare(name, "number", _number, default, **facts)

    def words(self, name: str, default: list[str], **facts: Any) -> list[str]:
        """Declare a list, written with commas between its items."""
        return self._declare(name, "list", _words, default, **facts)

    def networks(self, name: str) -> list[Network]:
        """Declare a list of IP addresses and networks, none by default; an address is a network of one."""
        nothing: list[Network] = []
        return self._declare(name, "networks", _networks, nothing)

    def external(self, name: str, kind: str, default: str) -> None:
        """Declare a variable that a library reads, or that is read before the settings load."""
        self._declare(name, kind, str, default, takes_file=False)

    def _declare(
        self,
        name: str,
        kind: str,
        parse: Callable[[str], T],
        default: D,
        *,
        unit: str = "",
        secret: bool = False,
        required: bool = False,
        takes_file: bool = True,
        default_is: str = "",
        least: float | None = None,
        most: float | None = None,
    ) -> T | D:
        """Read and note a variable.

        `default_is` describes a default that another setting decides; `least` and `most` bound a number.
        """
        others = {one.name: one for section in Section.every for one in section.variables}
        if name in others:
            raise ImproperlyConfigured(f"{name} is declared twice")
        value: T | D = default
        source, bounds = "default", _bounds(least, most)
        try:
            raw, source = _raw(name, takes_file=takes_file)
            found: Any = default if raw is None else parse(raw)
            low, high = -math.inf if least is None else least, math.inf if most is None else most
            if raw is not None and bounds and not low <= found <= high:
                Section.problems.append(f"{name} is not {bounds}")
            else:
                value = found
        except ValueError as fault:
            Section.problems.append(str(fault) if str(fault).startswith(name) else f"{name} {fault}")
        else:
            if required and not value:
                Section.problems.append(f"{name} is not set")
        stand_in = others.get(default_is)
        shown = _as_text(value) or ("" if stand_in is None or stand_in.is_secret else stand_in.value)
        self.variables.append(
            Variable(
                name=name,
                kind=kind,
                default=default_is or _as_text(default),
                unit=unit,
                is_secret=secret,
                is_required=required,
                takes_file=takes_file,
                source=source,
                value=("set" if shown else "") if secret else shown,
                bounds=bounds,
            )
        )
        return value


def refuse_problems() -> None:
    """Raises: ImproperlyConfigured that names every variable that cannot be read, and why."""
    if Section.problems:
        raise ImproperlyConfigured("; ".join(Section.problems))


def _raw(name: str, *, takes_file: bool) -> tuple[str | None, str]:
    """Return the text of a variable, None if it is not given, and its source.

    Raises: ValueError if its file cannot be read, or both the variable and its file are given.
    """
    given = os.environ.get(name)
    path = os.environ.get(f"{name}_FILE") if takes_file else None
    if not path:
        return given, "default" if given is None else "environment"
    if given is not None:
        raise ValueError(f"{name} and {name}_FILE are both set")
    try:
        return read_text(path).removesuffix("\n").removesuffix("\r"), "file"
    except OSError as fault:
        raise ValueError(f"{name}_FILE cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}_FILE is no UTF-8 text") from None


def _flag(raw: str) -> bool:
    word = raw.strip().lower()
    if word not in TRUE + FALSE:
        raise ValueError("is neither true nor false")
    return word in TRUE


def _integer(raw: str) -> int:
    try:
        return int(raw)
    except ValueError:
        raise ValueError("is no whole number") from None


def _number(raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        raise ValueError("is no number") from None
    if not math.isfinite(value):
        raise ValueError("is no finite number")
    return value


def _words(raw: str) -> list[str]:
    return [word for item in raw.split(",") if (word := item.strip())]


def _networks(raw: str) -> list[Network]:
    words = _words(raw)
    try:
        return [ip_network(word, strict=False) for word in words]
    except ValueError:
        raise ValueError("has an item that is no IP address or network") from None


def _bounds(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{least}-{most}"
    if least is not None:
        return f"≥{least}"
    return "" if most is None else f"≤{most}"


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return CREDENTIALS.sub(r"\1…@", text)


def read_text(path: str | Path) -> str:
    """Return the UTF-8 text of a file that an operator names, such as a secret.

    A symbolic link is followed, as in a volume of Kubernetes.
    Raises: OSError, also for a pipe or a device, which could block its reader for ever; UnicodeDecodeError.
    """
    file = Path(path)
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")
    return file.read_text(encoding="utf-8")
