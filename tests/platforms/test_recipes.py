"""Both ways to a JupyterHub on docs/teaching.md set the same things."""

import uuid

import yaml

from tools.bench import classroom

from .recipes import VALUES, block, file_of_tljh, kubernetes, merged, set_by_helm, set_by_tljh


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
