"""`python -m compliance.compiling`: compiles what is not compiled yet; silent when there is nothing to do.

Exit code 1, with the reason, when something can't be compiled: it then runs as Python, several times slower.
"""

import sys
from pathlib import Path
from typing import Final

from compliance.compiling.building import CannotCompile, CompilationFailed, build
from compliance.compiling.staging import Package

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("events.scoring",)


def package_named(name: str) -> Package:
    """One of the service's packages."""
    return Package(name, ROOT.joinpath(*name.split(".")))


def main() -> int:
    code = 0
    for name in PACKAGES:
        try:
            compiled = build(package_named(name))
        except (CannotCompile, CompilationFailed, OSError, SyntaxError) as error:
            sys.stderr.write(f"{name} runs interpreted, several times slower: {error}\n")
            code = 1
        else:
            if compiled:
                sys.stdout.write(f"{name}: {', '.join(compiled)}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
