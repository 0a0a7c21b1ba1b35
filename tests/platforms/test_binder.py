"""Binder: repo2docker reads environment.yml and chooses the Python it names; what pip installs there imports."""

import subprocess

import pytest
import yaml

from tools import publish

from .conftest import ROOT

pytestmark = pytest.mark.long_form


def test_repo2docker_accepts_the_repository(environment, address, tmp_path):
    environment.install("jupyter-repo2docker")
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    log = environment.run("-m", "repo2docker", "--no-build", "--debug", ".", cwd=tmp_path / "course")
    assert "Building conda environment for python=3.12" in log


def test_what_pip_installs_there_imports(environment, address, tmp_path):
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    for line in pip:
        environment.run("-m", "pip", "install", "--quiet", *line.split(), cwd=tmp_path / "course")
    environment.run("-c", "from lesson_utils import attention, models, plots; import jupyterlab, ipywidgets, tqdm")


def test_badges_open_jupyterlab_at_the_notebook():
    for path in [ROOT / "README.md", *publish.NOTEBOOKS.glob("*.ipynb")]:
        name = "00_start_here.ipynb" if path.suffix == ".md" else path.name
        assert f"?urlpath=lab/tree/notebooks/{name}" in path.read_text(encoding="utf-8"), path.name
