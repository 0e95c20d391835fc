"""What Cython is given: the modules with those imports made C imports that can be."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

# What Python's math module only hands on to the C library. It raises where these answer with inf or nan.
MATH: Final = frozenset({"exp", "expm1", "fabs", "isfinite", "isinf", "isnan", "log", "log1p", "sqrt"})
CLASS = re.compile(r"cdef\s+class\s+(\w+)")
FUNCTION = re.compile(r"c?p?def\s+(?P<inline>inline\s+)?[^#=]*?(?P<name>\w+)\(")
NUMBERS = re.compile(r"cdef\s+enum:\n((?:    \w+ = \d+\n)+)")
VARIABLES = re.compile(r"cdef\s+(?:[\w.\[\]]+\s+)+(\w+(?:\s*,\s*\w+)*)\s*(?:#.*)?$")


@dataclass(frozen=True)
class Declarations:
    """What a `.pxd` declares at its top level."""

    text: str

    @cached_property
    def classes(self) -> frozenset[str]:
        return frozenset(found[1] for found in self._each(CLASS))

    @cached_property
    def variables(self) -> list[str]:
        return [name.strip() for found in self._each(VARIABLES) for name in found[1].split(",")]

    @cached_property
    def names(self) -> frozenset[str]:
        """All that another compiled module may import as C."""
        functions = frozenset(found["name"] for found in self._each(FUNCTION))
        return self.classes | functions | self.numbers | frozenset(self.variables)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Whole numbers that the C compiler knows."""
        return frozenset(
            name for block in NUMBERS.findall(self.text) for name in re.findall(r"(\w+) =", block)
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but comments: the module is compiled as it stands."""
        return not any(line.strip() and not line.lstrip().startswith("#") for line in self.text.splitlines())

    @property
    def needs_module(self) -> bool:
        """False for what is inline all through: others copy it, and no module has to be compiled for it."""
        inline = frozenset(found["name"] for found in self._each(FUNCTION) if found["inline"])
        return not inline or self.names != inline | self.numbers

    def _each(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        return (found for line in self.text.splitlines() if (found := pattern.match(line)))


@dataclass(frozen=True)
class Package:
    """A package whose modules are compiled; `name` is dotted."""

    name: str
    folder: Path

    @cached_property
    def declared(self) -> Mapping[str, Declarations]:
        """The declarations by module."""
        return {path.stem: Declarations(path.read_text()) for path in sorted(self.folder.glob("*.pxd"))}

    @cached_property
    def staged(self) -> Mapping[str, str]:
        """The text of each module to compile, as Cython gets it: line for line that of the source."""
        return {
            module: self._with_c_imports((self.folder / f"{module}.py").read_text(), declared)
            for module, declared in self.declared.items()
            if declared.needs_module and (self.folder / f"{module}.py").exists()
        }

    def needed_by(self, module: str) -> list[str]:
        """The modules whose declarations are compiled into this one, in order."""
        found = {module} & self.declared.keys()
        waiting = [self.staged[module], *(self.declared[name].text for name in found)]
        while waiting:
            named = set(re.findall(rf"{re.escape(self.name)}\.(\w+)\s+c?import\b", waiting.pop()))
            new = (named & self.declared.keys()) - found
            found |= new
            waiting += [self.declared[name].text for name in new]
        return sorted(found)

    def _with_c_imports(self, text: str, own: Declarations) -> str:
        lines = text.splitlines(keepends=True)
        for node in ast.parse(text).body:
            if not isinstance(node, ast.ImportFrom) or node.end_lineno is None:
                continue
            statements = self._as_c(node, own)
            if statements:
                breaks = "\n" * (node.end_lineno - node.lineno + 1)
                kept = ["; ".join(statements) + breaks, *[""] * (node.end_lineno - node.lineno)]
                lines[node.lineno - 1 : node.end_lineno] = kept
        # Who is not compiled finds the C variables under their names; they are constants.
        return "".join([*lines, "\n", *(_known(name) + "\n" for name in own.variables)])

    def _as_c(self, node: ast.ImportFrom, own: Declarations) -> list[str]:
        """The statements for one import; none when it stays as it is."""
        source = node.module or ""
        if source == "math":
            names, classes, origin = frozenset() if own.is_empty else MATH, frozenset[str](), "libc.math"
        else:
            package, _, module = source.rpartition(".")
            if package != self.name or module not in self.declared:
                return []
            names, classes, origin = self.declared[module].names, self.declared[module].classes, source
        as_c = [alias for alias in node.names if alias.name in names]
        if not as_c:
            return []
        statements = [f"from cython.cimports.{origin} import {_listed(as_c)}"]
        # Python finds the classes in the module as ever: for annotations, and for who imports them from here.
        statements += [_known(alias.asname or alias.name) for alias in as_c if alias.name in classes]
        rest = [alias for alias in node.names if alias.name not in names]
        return [*statements, *([f"from {source} import {_listed(rest)}"] if rest else [])]


def _known(name: str) -> str:
    return f'globals()["{name}"] = {name}'


def _listed(aliases: list[ast.alias]) -> str:
    return ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in aliases)
