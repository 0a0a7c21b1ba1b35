"""Zero to JupyterHub: its chart takes our values, and they do what their comments say. No cluster is needed."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request

import jsonschema
import pytest
import yaml

from .conftest import ROOT
from .recipes import VALUES, block, merged, set_by_helm

CHART = "https://hub.jupyter.org/helm-chart/jupyterhub-4.4.0.tgz"
IMAGE = yaml.safe_load((ROOT / ".github/workflows/image.yml").read_text(encoding="utf-8"))["jobs"]["image"]


@pytest.mark.long_form
@pytest.mark.own_job
def test_the_chart_takes_the_values_as_the_page_gives_them():
    with urllib.request.urlopen(CHART, timeout=60) as answer, tarfile.open(fileobj=io.BytesIO(answer.read())) as chart:
        defaults = yaml.safe_load(chart.extractfile("jupyterhub/values.yaml"))
        schema = json.load(chart.extractfile("jupyterhub/values.schema.json"))
    ours = merged(merged(defaults, VALUES), set_by_helm())
    for values in (ours, merged(ours, yaml.safe_load(block("hub:")))):
        jsonschema.validate(values, schema)
    with pytest.raises(jsonschema.ValidationError):  # it does look
        jsonschema.validate(merged(defaults, {"singleuser": {"memori": {}}}), schema)


def test_the_page_installs_this_chart_with_an_image_as_the_workflow_names_it():
    command = block("helm upgrade")
    assert f"--version={re.search(r'-([0-9.]+)[.]tgz', CHART)[1]}" in command
    assert "--values=tools/teacher/hub/values.yaml" in command
    assert set_by_helm()["singleuser"]["image"]["name"].startswith("ghcr.io/")
    assert "IMAGE=ghcr.io/${GITHUB_REPOSITORY,,}:${GITHUB_SHA::12}" in str(IMAGE["steps"])


def test_a_student_finds_the_notebooks_at_home_and_they_stay_theirs(tmp_path):
    python, option, code = VALUES["singleuser"]["lifecycleHooks"]["postStart"]["exec"]["command"]
    assert (python, option) == ("python", "-c")
    place = re.search(r"--target-repo-dir (\S+)", str(IMAGE["steps"]))[1]
    home = VALUES["hub"]["config"]["KubeSpawner"]["working_dir"]
    assert place in code
    assert not place.startswith(home), "a student's disk hides what the image has there"
    code = code.replace(place, ROOT.as_posix()).replace(home, tmp_path.as_posix())
    first = tmp_path / VALUES["singleuser"]["defaultUrl"].removeprefix("/lab/tree/")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=os.environ | {"PYTHONPATH": ""})
        assert first.exists()
        first.write_text("what a student wrote")
    copies, originals = ({path.name for path in f.glob("*.ipynb")} for f in (first.parent, ROOT / "notebooks"))
    assert copies == originals
