"""The installed package: its metadata, and `check_installed.py`, which `wheels` runs with interpreters that have no pytest."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import check_installed


def test_the_package_contains_the_licences() -> None:
    names = ["LICENSE-APACHE", "LICENSE-MIT"]
    assert metadata.metadata("tamis").get_all("License-File") == names
    files = metadata.files("tamis") or []
    installed = {Path(file).name: file.read_text() for file in files if Path(file).name in names}
    root = Path(__file__).parents[3]
    assert installed == {name: (root / name).read_text() for name in names}


def test_the_program_that_checks_wheels(tmp_path: Path) -> None:
    check_installed.check(tmp_path / "store")
