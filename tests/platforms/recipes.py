"""What docs/teaching.md and tools/teacher/hub/values.yaml say, as JupyterHub gets to see it."""

import copy
import re

import yaml
from traitlets.config import Config

from .conftest import ROOT

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
