"""Binder: repo2docker reads environment.yml and chooses the Python it names; what pip installs there imports."""

import subprocess

import pytest
import yaml

from .conftest import ROOT

pytestmark = pytest.mark.long_form


@pytest.fixture
def clone(address, tmp_path):
    subprocess.run(["git", "clone", "--quiet", address, tmp_path / "course"], check=True)
    return tmp_path / "course"


def test_repo2docker_accepts_the_repository(environment, clone):
    environment.install("jupyter-repo2docker")
    log = environment.run("-m", "repo2docker", "--no-build", "--debug", ".", cwd=clone)
    assert "Building conda environment for python=3.12" in log


def test_what_pip_installs_there_imports(environment, clone):
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    for line in pip:
        environment.run("-m", "pip", "install", "--quiet", *line.split(), cwd=clone)
    environment.run("-c", "from lesson_utils import attention, models, plots; import jupyterlab, ipywidgets, tqdm")
