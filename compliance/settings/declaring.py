"""Declarations of settings, each with its type, default, unit and purpose, and read from the environment."""

import errno
import math
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partialmethod
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "on", "y", "ok"), True),
    **dict.fromkeys(("0", "false", "no", "off", "n", ""), False),
}
CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@")
"""Scheme and credentials of a URL, which are not shown, whatever setting it is."""

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

    def _declare(
        self,
        kind: str,
        name: str,
        default: Any,
        *,
        parse: Callable[[str], Any] | None = None,
        unit: str = "",
        secret: bool = False,
        required: bool = False,
        takes_file: bool = True,
        default_is: str = "",
        least: float | None = None,
        most: float | None = None,
    ) -> Any:
        """Read and note a variable.

        `parse`, instead of the kind's own, returns the value or raises a ValueError that does not show it.
        `takes_file` is false of one that a library reads, or that is read before the settings load.
        `default_is` describes a default that another setting decides; `least` and `most` bound a number.
        """
        others = {one.name: one for section in Section.every for one in section.variables}
        if name in others:
            raise ImproperlyConfigured(f"{name} is declared twice")
        value, source, fault, bounds = default, "default", "", _bounds(least, most)
        low, high = -math.inf if least is None else least, math.inf if most is None else most
        try:
            raw, source = _raw(name, takes_file=takes_file)
            value = default if raw is None else _parsed(raw, kind, parse)
        except ValueError as error:
            fault = str(error)
        else:
            if raw is not None and bounds and not low <= value <= high:
                value, fault = default, f"is not {bounds}"
            elif required and not value:
                fault = "is not set"
        if fault:
            Section.problems.append(fault if fault.startswith(name) else f"{name} {fault}")
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

    text = partialmethod(_declare, "text")
    flag = partialmethod(_declare, "flag")
    integer = partialmethod(_declare, "integer")
    number = partialmethod(_declare, "number")  # may have a fraction
    words = partialmethod(_declare, "list")  # with commas between its items
    networks = partialmethod(_declare, "networks")  # with commas; an address is a network of one


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


def _words(raw: str) -> list[str]:
    return [word for item in raw.split(",") if (word := item.strip())]


_KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "text": (str, ""),
    "flag": (lambda raw: FLAGS[raw.strip().lower()], "is neither true nor false"),
    "integer": (int, "is no whole number"),
    "number": (float, "is no number"),
    "list": (_words, ""),
    "networks": (
        lambda raw: [ip_network(word, strict=False) for word in _words(raw)],
        "has an item that is no IP address or network",
    ),
}
"""How each kind is parsed, and the fault of what cannot be."""


def _parsed(raw: str, kind: str, own: Callable[[str], Any] | None) -> Any:
    if own is not None:
        return own(raw)
    parse, fault = _KINDS[kind]
    try:
        value = parse(raw)
    except (ValueError, KeyError):
        raise ValueError(fault) from None
    if kind == "number" and not math.isfinite(value):
        raise ValueError("is no finite number")
    return value


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
