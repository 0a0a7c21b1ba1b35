"""What docs/teaching.md and tools/teacher/hub/values.yaml say, as JupyterHub gets to see it."""

import copy
import re

import yaml

from .conftest import ROOT

VALUES = yaml.safe_load((ROOT / "tools/teacher/hub/values.yaml").read_text(encoding="utf-8"))
TEACHING = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
# The Littlest JupyterHub's and the chart's own, as far as they bear on who may log in.
LITTLEST = {
    "auth": {
        "type": "firstuseauthenticator.FirstUseAuthenticator",
        "FirstUseAuthenticator": {"create_users": False},
    },
    "users": {"allowed": [], "admin": []},
}
CHART = {"JupyterHub": {"authenticator_class": "dummy", "admin_access": True}}


def block(start):
    """The one block of code on the page that begins with these words."""
    (found,) = re.findall(rf"^```\w*\n({re.escape(start)}.+?)^```", TEACHING, re.M | re.S)
    return found


def helm(values, given):
    """The chart's values with these in their place, as helm merges them."""
    merged = dict(values)
    for key, value in given.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = helm(merged[key], value) if both else value
    return merged


def nested(path, value):
    """("a.b", 1) → {"a": {"b": 1}}"""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def set_by_helm():
    """What the page's command sets on top of the file; {a,b} is a list."""
    given = {}
    for path, value in re.findall(r"--set '?([\w.]+)=([^\s']+)", block("helm upgrade")):
        given = helm(given, nested(path, value[1:-1].split(",") if value.startswith("{") else value))
    return given


def set_by_tljh():
    """What the page's commands write into The Littlest JupyterHub's config.yaml."""
    commands, (admin,) = block("curl "), re.findall(r"--admin (\S+)", block("curl "))
    given = {"users": {"admin": [admin]}}
    for verb, path, value in re.findall(r"^sudo tljh-config (set|add-item) (\S+) (\S+)$", commands, re.M):
        read = yaml.safe_load(value)  # true is True, and 3600 a number, as there
        given = helm(given, nested(path, [read] if verb == "add-item" else read))
    return given


def file_of_tljh():
    """What the page's commands write into a file of its own, which The Littlest JupyterHub reads after that."""
    (text,) = re.findall(
        r"^sudo tee /opt/tljh/config/jupyterhub_config\.d/\w+\.py <<'END'\n(.+?)^END$", block("curl "), re.M | re.S
    )
    return text


def littlest():
    """JupyterHub's options as The Littlest JupyterHub makes them."""
    config = helm(LITTLEST, set_by_tljh())
    auth, users = config["auth"], config["users"]
    options = {name: dict(value) for name, value in auth.items() if name[0].isupper()}
    options["JupyterHub"] = {"authenticator_class": auth["type"]}
    options["Authenticator"] = {"allowed_users": users["allowed"], "admin_users": users["admin"]}
    if not users["allowed"]:
        options["FirstUseAuthenticator"]["allow_all"] = True
    return options


def kubernetes(*files):
    """JupyterHub's options as the chart makes them of the values, of further files of values, and of the command."""
    merged = {"hub": {"config": CHART}}
    for values in (VALUES, *files, set_by_helm()):
        merged = helm(merged, values)
    return copy.deepcopy(merged["hub"]["config"])


def university():
    """The same with the page's file for a university's login."""
    return kubernetes(yaml.safe_load(block("hub:")))
