"""Binder: repo2docker reads environment.yml and chooses the Python it names; what pip installs there imports."""

import subprocess

import pytest
import yaml

from tools import save

from .conftest import ROOT

pytestmark = pytest.mark.long_form
JOB = yaml.safe_load((ROOT / ".github/workflows/image.yml").read_text(encoding="utf-8"))["jobs"]["image"]
(BUILD,) = (step["run"] for step in JOB["steps"] if step.get("run", "").startswith("jupyter-repo2docker"))
FOR_A_CLASS = BUILD.replace("$IMAGE", "course:test").replace('"', "").split()[1:]  # elsewhere than in the home


@pytest.fixture
def clone(address, tmp_path):
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    return tmp_path / "course"


@pytest.mark.parametrize("words", [["."], FOR_A_CLASS], ids=["Binder", "class"])
def test_repo2docker_accepts_the_repository(words, environment, clone):
    environment.install("jupyter-repo2docker")
    log = environment.run("-m", "repo2docker", "--no-build", "--debug", *words, cwd=clone)
    assert "Building conda environment for python=3.12" in log


def test_what_pip_installs_there_imports(environment, clone):
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    for line in pip:
        environment.run("-m", "pip", "install", "--quiet", *line.split(), cwd=clone)
    environment.run("-c", "from lesson_utils import attention, models, plots; import jupyterlab, ipywidgets, tqdm")


def test_badges_open_jupyterlab_at_the_notebook():
    for path in [ROOT / "README.md", *save.NOTEBOOKS.glob("*.ipynb")]:
        name = "00_start_here.ipynb" if path.suffix == ".md" else path.name
        assert f"?urlpath=lab/tree/notebooks/{name}" in path.read_text(encoding="utf-8"), path.name
