"""The programs of docs/guide/python.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs/guide/python.md"


def test_programs_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not GUIDE.exists():
        pytest.skip("the tests run outside of the repository")
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(programs) >= 3
    names: dict[str, object] = {}
    for program in programs:
        exec(compile(program, str(GUIDE), "exec"), names)
