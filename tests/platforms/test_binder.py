"""Binder: repo2docker reads environment.yml and chooses the Python it names; what pip installs there imports."""

import subprocess

import pytest
import yaml

from tools import save

from .conftest import ROOT

pytestmark = pytest.mark.long_form


def test_repo2docker_accepts_the_repository(environment, address, tmp_path):
    environment.install("jupyter-repo2docker")
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    log = environment.run("-m", "repo2docker", "--no-build", "--debug", ".", cwd=tmp_path / "course")
    assert "Building conda environment for python=3.12" in log


def test_repo2docker_understands_how_the_image_for_a_class_is_built(environment, address, tmp_path):
    """As on Binder, but elsewhere than in the home."""
    environment.install("jupyter-repo2docker")
    steps = yaml.safe_load((ROOT / ".github/workflows/image.yml").read_text(encoding="utf-8"))["jobs"]["image"]["steps"]
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("jupyter-repo2docker"))
    words = command.replace("$IMAGE", "course:test").replace('"', "").split()[1:]
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    log = environment.run("-m", "repo2docker", "--no-build", "--debug", *words, cwd=tmp_path / "course")
    assert "Building conda environment for python=3.12" in log


def test_what_pip_installs_there_imports(environment, address, tmp_path):
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    for line in pip:
        environment.run("-m", "pip", "install", "--quiet", *line.split(), cwd=tmp_path / "course")
    environment.run("-c", "from lesson_utils import attention, models, plots; import jupyterlab, ipywidgets, tqdm")


def test_badges_open_jupyterlab_at_the_notebook():
    for path in [ROOT / "README.md", *save.NOTEBOOKS.glob("*.ipynb")]:
        name = "00_start_here.ipynb" if path.suffix == ".md" else path.name
        assert f"?urlpath=lab/tree/notebooks/{name}" in path.read_text(encoding="utf-8"), path.name
