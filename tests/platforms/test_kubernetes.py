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
from .recipes import VALUES, block, helm, set_by_helm

CHART = "https://hub.jupyter.org/helm-chart/jupyterhub-4.4.0.tgz"
IMAGE = yaml.safe_load((ROOT / ".github/workflows/image.yml").read_text(encoding="utf-8"))["jobs"]["image"]


@pytest.mark.long_form
@pytest.mark.own_job
def test_the_chart_takes_the_values_as_the_page_gives_them():
    with urllib.request.urlopen(CHART, timeout=60) as answer, tarfile.open(fileobj=io.BytesIO(answer.read())) as chart:
        defaults = yaml.safe_load(chart.extractfile("jupyterhub/values.yaml"))
        schema = json.load(chart.extractfile("jupyterhub/values.schema.json"))
    ours = helm(helm(defaults, VALUES), set_by_helm())
    jsonschema.validate(ours, schema)
    jsonschema.validate(helm(ours, yaml.safe_load(block("hub:"))), schema)
    for pods in (ours["hub"], ours["proxy"]["chp"], ours["proxy"]["traefik"], ours["singleuser"]):
        assert pods["networkPolicy"]["enabled"]
    with pytest.raises(jsonschema.ValidationError):  # it does look
        jsonschema.validate(helm(defaults, {"singleuser": {"memori": VALUES["singleuser"]["memory"]}}), schema)


def test_the_page_installs_this_chart_with_an_image_as_the_workflow_names_it():
    command = block("helm upgrade")
    assert f"--version={re.search(r'-([0-9.]+)[.]tgz', CHART)[1]}" in command
    assert "--values=tools/teacher/hub/values.yaml" in command
    image = set_by_helm()["singleuser"]["image"]
    assert image["name"].startswith("ghcr.io/")
    assert "IMAGE=ghcr.io/${GITHUB_REPOSITORY,,}:${GITHUB_SHA::12}" in str(IMAGE["steps"])


def test_a_student_finds_the_notebooks_at_home_and_they_stay_theirs(tmp_path):
    (command,) = (v["exec"]["command"] for v in VALUES["singleuser"]["lifecycleHooks"].values())
    (build,) = (step["run"] for step in IMAGE["steps"] if "repo2docker --" in step.get("run", ""))
    place, home = re.search(r"--target-repo-dir (\S+)", build)[1], VALUES["hub"]["config"]["KubeSpawner"]["working_dir"]
    assert not place.startswith(home)
    assert command[:2] == ["python", "-c"]
    assert place in command[2]
    code = command[2].replace(place, ROOT.as_posix()).replace(home, tmp_path.as_posix())
    first = tmp_path / VALUES["singleuser"]["defaultUrl"].removeprefix("/lab/tree/")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=os.environ | {"PYTHONPATH": ""})
        assert first.exists()
        first.write_text("what a student wrote")
    assert first.read_text() == "what a student wrote"
    copies, originals = ({path.name for path in f.glob("*.ipynb")} for f in (first.parent, ROOT / "notebooks"))
    assert copies == originals


def test_memory_and_processors_guaranteed_are_less_than_the_limits():
    memory, cpu = VALUES["singleuser"]["memory"], VALUES["singleuser"]["cpu"]
    assert float(memory["guarantee"][:-1]) < float(memory["limit"][:-1])
    assert cpu["guarantee"] < cpu["limit"]
