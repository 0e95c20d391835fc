"""Compiles a package's hot modules with Cython, and has Python prefer what was compiled.

The modules stay plain Python and are the only source. `X.pxd` beside `X.py` says that X is compiled, and may
tell the C types of what X defines. `python -m compliance.compiling` compiles; a package takes what was
compiled by `__path__ = with_compiled(__path__)` before its imports. Where nothing was compiled of the sources
as they are, the modules run as Python, with the same results.
"""

from compliance.compiling.builds import runs_compiled, with_compiled

__all__ = ["runs_compiled", "with_compiled"]
