"""`tamis.compat.plyvel`: plyvel's own suite, from its source package."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import tamis.compat.plyvel as plyvel

# Tests of plyvel that the store cannot pass, with the reason.
LEFT_OUT = {
    "test_comparator": "there are no custom comparators",
    "test_approximate_sizes": "it writes the empty key, and keys of more than 65,535 bytes",
}


def suite(folder: Path) -> Path:
    """The test file of plyvel's source package; skips without a package index."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "plyvel"]
    command += ["--retries", "1", "--timeout", "20", "--dest", str(folder), "plyvel==1.5.1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    if subprocess.run(command, capture_output=True, env=environment, timeout=300).returncode != 0:
        pytest.skip("plyvel's source package cannot be fetched: no package index")
    with tarfile.open(folder / "plyvel-1.5.1.tar.gz") as package:
        member = package.extractfile("plyvel-1.5.1/test/test_plyvel.py")
        assert member is not None
        file = folder / "test_plyvel_suite.py"
        file.write_bytes(member.read())
    return file


def test_plyvels_own_suite_passes(tmp_path: Path) -> None:
    file = suite(tmp_path)
    (tmp_path / "plyvel.py").write_text(
        "import sys\nimport tamis.compat.plyvel\nsys.modules['plyvel'] = tamis.compat.plyvel\n"
    )
    deselected = [f"--deselect={file.name}::{name}" for name in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", *deselected, file.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(LEFT_OUT)} deselected" in run.stdout and "skipped" not in run.stdout, run.stdout


def test_what_differs_from_plyvel_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(plyvel.IOError, match="create_if_missing is false"):
        plyvel.DB(tmp_path / "store")
    with pytest.raises(NotImplementedError, match="ordered by their bytes"):
        plyvel.DB(tmp_path / "store", create_if_missing=True, comparator=lambda a, b: 0, comparator_name=b"zero")
    with plyvel.DB(tmp_path / "store", create_if_missing=True, write_buffer_size=1 << 20) as db:
        with pytest.raises(plyvel.Error, match="key"):
            db.put(b"", b"value")
        db.put(b"a1", b"v")
        with pytest.raises(plyvel.IOError):
            plyvel.destroy_db(tmp_path / "store")
        batch = db.prefixed_db(b"a").write_batch()
        batch.put(b"2", b"w")
        batch.write()
        batch.write()
        assert list(db.iterator(include_value=False)) == [b"a1", b"a2"]
        with db.raw_iterator() as raw:
            raw.seek_to_last()
            raw.prev()
            assert raw.item() == (b"a1", b"v")
            raw.next()
            assert raw.key() == b"a2"
    # Options of a new store do not matter for an existing one.
    with plyvel.DB(tmp_path / "store", write_buffer_size=2 << 20) as db:
        assert db.get(b"a2") == b"w"
