"""Both ways to a JupyterHub: what docs/teaching.md and tools/teacher/hub/values.yaml say, as JupyterHub gets to see it.

The chart of Zero to JupyterHub takes our values, and they do what their comments say. No cluster is needed.
"""

import copy
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
import uuid

import jsonschema
import pytest
import yaml
from traitlets.config import Config

from tools.bench import classroom

from .conftest import ROOT

CHART = "https://hub.jupyter.org/helm-chart/jupyterhub-4.4.0.tgz"
IMAGE = yaml.safe_load((ROOT / ".github/workflows/image.yml").read_text(encoding="utf-8"))["jobs"]["image"]
VALUES = yaml.safe_load((ROOT / "tools/teacher/hub/values.yaml").read_text(encoding="utf-8"))
TEACHING = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")


def block(start):
    """The one block of code on the page that begins with these words."""
    (found,) = re.findall(rf"^```\w*\n({re.escape(start)}.+?)^```", TEACHING, re.M | re.S)
    return found


def merged(values, given):
    """The values with these in their place, as helm merges them."""
    result = copy.deepcopy(values)
    for key, value in given.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def nested(path, value):
    """("a.b", 1) → {"a": {"b": 1}}"""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def set_by_helm():
    """What the page's command sets on top of the file; {a,b} is a list."""
    given = {}
    for path, value in re.findall(r"--set '?([\w.]+)=([^\s']+)", block("helm upgrade")):
        given = merged(given, nested(path, value[1:-1].split(",") if value.startswith("{") else value))
    return given


def set_by_tljh():
    """What the page's commands write into The Littlest JupyterHub's config.yaml."""
    given = {}
    for verb, path, value in re.findall(r"^sudo tljh-config (set|add-item) (\S+) (\S+)$", block("curl "), re.M):
        read = yaml.safe_load(value)  # 3600 is a number, as there
        given = merged(given, nested(path, [read] if verb == "add-item" else read))
    return given


def file_of_tljh():
    """The options in the file of Python that the page's commands write for The Littlest JupyterHub."""
    (text,) = re.findall(r"^sudo tee /opt/tljh/config/\S+\.py <<'END'\n(.+?)^END$", block("curl "), re.M | re.S)
    options = Config()
    exec(text, {"c": options})
    return options


def littlest():
    """JupyterHub's options as The Littlest JupyterHub has them by itself, with the page's teacher."""
    return {
        "JupyterHub": {"authenticator_class": "firstuseauthenticator.FirstUseAuthenticator"},
        "FirstUseAuthenticator": {"create_users": False, "allow_all": True},
        "Authenticator": {"admin_users": re.findall(r"--admin (\S+)", block("curl "))},
    }


def kubernetes(*files):
    """JupyterHub's options as the chart makes them of the values, of further files of values, and of the command."""
    values = {"hub": {"config": {"JupyterHub": {"authenticator_class": "dummy", "admin_access": True}}}}
    for given in (VALUES, *files, set_by_helm()):
        values = merged(values, given)
    return values["hub"]["config"]


def test_both_have_https_and_the_same_limits():
    tljh, values = set_by_tljh(), merged(VALUES, set_by_helm())
    chart = values["proxy"]["https"]
    assert tljh["https"]["enabled"] is chart["enabled"] is True
    assert tljh["https"]["letsencrypt"]["domains"] == chart["hosts"]
    assert tljh["https"]["letsencrypt"]["email"] == chart["letsencrypt"]["contactEmail"]
    assert tljh["limits"]["memory"] == values["singleuser"]["memory"]["limit"]
    assert tljh["services"]["cull"]["timeout"] == values["cull"]["timeout"]
    assert VALUES["proxy"]["https"]["hosts"], "without a host, the chart would serve plain HTTP"


def test_the_littlest_hub_starts_servers_whose_kernels_need_no_port():
    """Nor a path that is too long for a socket: 107 characters."""
    options = file_of_tljh()
    assert options.SystemdSpawner.isolate_tmp
    assert options.Spawner.args == [word for word in classroom.OPTIONS["Spawner.args"] if word != "--allow-root"]
    assert len(f"{options.Spawner.environment['JUPYTER_RUNTIME_DIR']}/kernel-{uuid.uuid4()}-ipc-5") < 107


def test_the_universitys_login_lets_in_whom_the_teacher_has_added():
    options = kubernetes(yaml.safe_load(block("hub:")))
    assert options["JupyterHub"]["authenticator_class"] == "generic-oauth"
    assert options["GenericOAuthenticator"]["allow_existing_users"] is True
    assert "allow_all" not in options["GenericOAuthenticator"]
    assert options["Authenticator"]["admin_users"] == ["YOUR_NAME"]


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
