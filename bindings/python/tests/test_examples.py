"""The examples and the notebook run. Those whose packages are not installed are skipped."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str, *packages: str) -> ModuleType:
    """Imports an example."""
    for package in packages:
        pytest.importorskip(package)
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def test_pandas_time_series(tmp_path: Path) -> None:
    daily = example("pandas_time_series", "pandas").main(tmp_path / "store")
    assert len(daily) == 7
    assert daily.between(19.99, 20.01).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_fastapi_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READINGS", str(tmp_path / "store"))
    service = example("fastapi_service", "fastapi", "httpx")
    from fastapi.testclient import TestClient

    for _ in range(2):  # the second time with stored readings
        with TestClient(service.app) as client:
            readings = [{"time": time, "value": time / 2} for time in range(100)]
            assert client.put("/sensors/roof", json=readings).json() == {"stored": 100}
            found = client.get("/sensors/roof", params={"start": 10, "end": 12}).json()
            assert found == [{"time": 10, "value": 5.0}, {"time": 11, "value": 5.5}]
            assert client.get("/sensors/roof/newest").json() == {"time": 99, "value": 49.5}
            assert client.get("/sensors/cellar/newest").status_code == 404
            client.delete("/sensors/roof", params={"before": 90})
            assert len(client.get("/sensors/roof").json()) == 10


@pytest.mark.filterwarnings("ignore")
def test_notebook_of_false_positive_rates(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(EXAMPLES / "false_positive_rates.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
