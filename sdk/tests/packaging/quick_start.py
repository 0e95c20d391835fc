"""Runs with the installed package alone: the Python blocks of a page, one after the other."""

import re
import sys
from pathlib import Path

page = Path(sys.argv[1])
blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
names: dict[str, object] = {}
for block in blocks:
    exec(compile(block, str(page), "exec"), names)  # noqa: S102
sys.stdout.write(f"\n{len(blocks)} blocks\n")
