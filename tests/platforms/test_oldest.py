"""The oldest versions that pyproject.toml allows: the fast tests, and all notebooks."""

import re
import sys
import tomllib

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.long_form

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def oldest(requirement):
    """ "numpy>=2.0" → "numpy==2.0.*", the oldest series of releases, as far as this Python has it."""
    name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
    if name == "numpy" and sys.version_info >= (3, 13):
        version = "2.1"  # the first with wheels for it
    return f"{name}=={version}.*"


def test_the_suite_passes(environment):
    pins = [oldest(requirement) for requirement in PROJECT["dependencies"]]
    tools = "colorspacious hypothesis jupyterlab nbconvert nbval pytest pyyaml bleach threadpoolctl".split()
    environment.install(*pins, *tools)
    environment.run("-m", "pip", "install", "--quiet", "--no-deps", "-e", str(ROOT))
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not long_form", "--ignore=tests/tools"]
    # Notebooks run here, and their claims hold; what they print is compared with today's versions only.
    options += [
        "-o",
        "addopts=--strict-markers --nbval-lax --nbval-current-env --nbval-cell-timeout=300",
    ]
    environment.run("-m", "pytest", *options, "tests", "notebooks", cwd=ROOT, COURSE_TRAIN="no")
    installed = environment.versions("numpy", "matplotlib", "ipywidgets", "tqdm")
    for pin in pins:
        name, version = pin.removesuffix(".*").split("==")
        assert installed[name].startswith(version), installed
