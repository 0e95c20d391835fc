"""The page of all settings, docs/settings.md, written from their declarations."""

from collections.abc import Sequence

from compliance.settings.declaring import Section, Variable

HEAD = """# Settings

Made by `./run manage settings --page > docs/settings.md`; each is declared in `compliance/settings/`.

Settings come from environment variables, or from files: `<NAME>_FILE` names a file with the value of `NAME`,
as container and systemd credentials are given; a line end after the value does not count. Only one of the two
may be set. What cannot be read stops every process, with the setting's name and the reason, never its value.

`manage.py settings` prints each with the value in force and where it came from; of secrets it says only
whether they are set. `check --deploy` refuses [unsafe values](deployment.md#unsafe-settings).

Types: a `flag` is `true` or `false` (also 1 and 0, yes and no, on and off); a `list` has commas between its
items; `networks` are such a list of IP addresses and networks (`10.0.0.0/8`). Numbers out of the bounds shown
stop every process, too. **Secret** marks what belongs in a file. Brackets hold the default.
"""


def page(sections: Sequence[Section]) -> str:
    """Return the page as Markdown."""
    return HEAD + "".join(_section(section) for section in sections)


def _section(section: Section) -> str:
    introduction = f"{section.introduction}\n\n" if section.introduction else ""
    return f"\n## {section.title}\n\n{introduction}" + "".join(_row(one) for one in section.variables)


def _row(variable: Variable) -> str:
    facts = [variable.kind, variable.unit, variable.bounds]
    marks = [word for word, holds in _marks(variable) if holds]
    default = "" if variable.is_required else f" ({_default(variable)})"
    described = ", ".join(filter(None, [*facts, *marks]))
    return f"- `{variable.name}`{default}, {described}: {variable.sentence}\n"


def _marks(variable: Variable) -> list[tuple[str, bool]]:
    return [
        ("**required**", variable.is_required),
        ("**secret**", variable.is_secret),
        ("no `_FILE`", not variable.takes_file),
    ]


def _default(variable: Variable) -> str:
    return f"`{variable.default}`" if variable.default else "none"
