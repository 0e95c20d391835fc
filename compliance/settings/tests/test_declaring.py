import os
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from compliance.settings import declaring
from compliance.settings.declaring import Section, read_text, refuse_problems


@pytest.fixture
def section(monkeypatch: pytest.MonkeyPatch) -> Section:
    """A section apart from the service's own."""
    monkeypatch.setattr(declaring.Section, "every", [])
    monkeypatch.setattr(declaring.Section, "problems", [])
    return Section("Tried")


def test_default_holds_where_nothing_is_given(section: Section) -> None:
    assert section.integer("TRIED", 5, unit="seconds") == 5

    [variable] = section.variables
    assert (variable.source, variable.value, variable.default) == ("default", "5", "5")
    assert (variable.kind, variable.unit, variable.is_secret) == ("integer", "seconds", False)


@pytest.mark.parametrize(
    ("method", "default", "raw", "value"),
    [
        ("text", "", "$HOME and more", "$HOME and more"),
        ("flag", False, "true", True),
        ("flag", True, "off", False),
        ("integer", 1, "12", 12),
        ("integer", None, "12", 12),
        ("number", 1.0, "0.25", 0.25),
        ("words", ["x"], "a, b,,c", ["a", "b", "c"]),
        ("words", ["x"], "", []),
    ],
)
def test_value_of_the_environment_is_read(
    section: Section, monkeypatch: pytest.MonkeyPatch, method: str, default: object, raw: str, value: object
) -> None:
    monkeypatch.setenv("TRIED", raw)

    assert getattr(section, method)("TRIED", default) == value
    assert section.variables[0].source == "environment"
    refuse_problems()


def test_value_of_a_file_is_read_without_its_line_end(
    section: Section, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tried").write_text(" kept \n")
    monkeypatch.setenv("TRIED_FILE", str(tmp_path / "tried"))

    assert section.text("TRIED", "", secret=True) == " kept "

    assert (section.variables[0].source, section.variables[0].value) == ("file", "set")
    refuse_problems()


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("flag", "TRIED is neither true nor false"),
        ("integer", "TRIED is no whole number"),
        ("number", "TRIED is no number"),
    ],
)
def test_wrong_value_is_named_and_not_shown(
    section: Section, monkeypatch: pytest.MonkeyPatch, method: str, reason: str
) -> None:
    monkeypatch.setenv("TRIED", "hunter2")

    getattr(section, method)("TRIED", 0)

    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_problems()
    assert str(refused.value) == reason


@pytest.mark.parametrize("raw", ["nan", "inf", "-Infinity", "1e999"])
def test_number_without_end_is_refused(section: Section, monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("TRIED", raw)

    section.number("TRIED", 1.0)

    with pytest.raises(ImproperlyConfigured, match="TRIED is no finite number"):
        refuse_problems()


@pytest.mark.parametrize("raw", ["0", "-1", "366", "1" + "0" * 40])
def test_number_out_of_bounds_is_refused(section: Section, monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("TRIED", raw)

    assert section.integer("TRIED", 30, least=1, most=365) == 30

    with pytest.raises(ImproperlyConfigured, match=r"^TRIED is not 1-365$"):
        refuse_problems()


def test_bounds_are_described(section: Section) -> None:
    section.integer("BOTH", 5, least=1, most=9)
    section.integer("LEAST", None, least=1)
    section.number("MOST", 5.0, most=9.5)
    section.integer("NEITHER", 5)

    assert [one.bounds for one in section.variables] == ["1-9", "≥1", "≤9.5", ""]


def test_addresses_are_read_as_networks(section: Section, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIED", "192.0.2.10, 10.0.0.5/8,2001:db8::/32,")

    networks = section.networks("TRIED", [])

    assert networks == [ip_network("192.0.2.10/32"), ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")]
    [variable] = section.variables
    assert (variable.kind, variable.default) == ("networks", "")
    assert variable.value == "192.0.2.10/32,10.0.0.0/8,2001:db8::/32"
    refuse_problems()


@pytest.mark.parametrize(
    "raw", ["hunter2", "10.0.0.1,hunter2", "10.0.0.0/33", "010.0.0.1", "10.0.0.1 10.0.0.2"]
)
def test_what_is_no_network_is_refused(section: Section, monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("TRIED", raw)

    assert section.networks("TRIED", []) == []

    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_problems()
    assert str(refused.value) == "TRIED has an item that is no IP address or network"


def test_all_problems_are_named_at_once(
    section: Section, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv("ABSENT_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("BINARY_FILE", str(tmp_path / "binary"))
    monkeypatch.setenv("BOTH_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("BOTH", "hunter2")

    for name in ("ABSENT", "BINARY", "BOTH", "NEEDED"):
        section.text(name, "", secret=True, required=name == "NEEDED")

    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_problems()
    assert str(refused.value) == (
        "ABSENT_FILE cannot be read: No such file or directory; BINARY_FILE is no UTF-8 text; "
        "BOTH and BOTH_FILE are both set; NEEDED is not set"
    )


def test_variable_is_declared_once(section: Section) -> None:
    section.text("TRIED", "")

    with pytest.raises(ImproperlyConfigured, match="TRIED is declared twice"):
        section.integer("TRIED", 1)


@pytest.mark.parametrize("method", ["text", "words"])
def test_credentials_of_an_address_are_not_shown(
    section: Section, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setenv("TRIED", "https://user:of-the-user@spans.example.org/v1")

    getattr(section, method)("TRIED", "")

    assert section.variables[0].value == "https://…@spans.example.org/v1"


# --- Only regular files are read ------------------------------------------------------------------


def test_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("ö\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "secret")

    assert read_text(tmp_path / "link") == "ö\n"


def test_what_could_block_its_reader_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")

    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match="Not a regular file"):
            read_text(path)
