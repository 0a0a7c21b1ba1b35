"""Both ways to a JupyterHub on docs/teaching.md let a class in by the same door, and none by another."""

import re

import pytest

from .recipes import (
    LITTLEST,
    TEACHING,
    VALUES,
    block,
    file_of_tljh,
    helm,
    kubernetes,
    littlest,
    set_by_helm,
    set_by_tljh,
    university,
)

YOU = ["YOUR_NAME"]


@pytest.mark.parametrize("options", [littlest(), kubernetes()], ids=["littlest", "kubernetes"])
def test_each_student_has_a_password_of_ones_own_and_the_teacher_says_who_is_a_student(options):
    assert options["JupyterHub"]["authenticator_class"] in ("firstuse", "firstuseauthenticator.FirstUseAuthenticator")
    assert options["FirstUseAuthenticator"]["create_users"] is False
    assert options["Authenticator"]["admin_users"] == YOU
    assert "password" not in str(options).replace("passwords.dbm", "").lower()


def test_the_universitys_login_lets_in_whom_the_teacher_has_added():
    options = university()
    assert options["JupyterHub"]["authenticator_class"] == "generic-oauth"
    assert options["GenericOAuthenticator"]["allow_existing_users"] is True
    assert not options["GenericOAuthenticator"].get("allow_all")
    assert options["Authenticator"]["admin_users"] == YOU
    assert "--values=login.yaml" in TEACHING


def test_both_have_https_and_the_same_limits():
    tljh, values = helm(LITTLEST, set_by_tljh()), helm(VALUES, set_by_helm())
    for https, names in ((tljh["https"], "domains"), (values["proxy"]["https"], "hosts")):
        assert https["enabled"] is True
        assert (https if names == "hosts" else https["letsencrypt"])[names] == ["YOUR_DOMAIN"]
    assert tljh["https"]["letsencrypt"]["email"] == "YOUR_EMAIL"
    assert values["proxy"]["https"]["letsencrypt"]["contactEmail"] == "YOUR_EMAIL"
    assert tljh["limits"]["memory"] == values["singleuser"]["memory"]["limit"]
    assert tljh["services"]["cull"]["timeout"] == values["cull"]["timeout"]


def test_values_without_the_command_still_send_no_password_in_clear():
    """Without a host, the chart would serve plain HTTP."""
    assert VALUES["proxy"]["https"] == {"enabled": True, "type": "letsencrypt", "hosts": ["hub.invalid"]}


def test_a_students_server_reaches_no_neighbour_and_a_deleted_name_loses_no_home():
    policy = VALUES["singleuser"]["networkPolicy"]
    assert policy["enabled"] is True
    assert not policy["egressAllowRules"]["privateIPs"]
    assert not policy["egressAllowRules"]["cloudMetadataServer"]
    assert VALUES["hub"]["config"]["KubeSpawner"]["delete_pvc"] is False


def test_what_is_set_is_in_force_before_anybody_logs_in():
    """The commands need no hub to be logged in to, and end with those that make the hub read what they set."""
    commands = block("curl ").splitlines()
    assert commands[-2:] == ["sudo tljh-config reload proxy", "sudo tljh-config reload"]
    assert TEACHING.index(commands[-1]) < TEACHING.index("Open `https://YOUR_DOMAIN`")
    read = [line for line in commands if re.match(r"sudo tljh-config (set|add-item) ", line)]
    file = ["sudo tee", *file_of_tljh().splitlines(), "END"]
    assert len(read) == len(commands) - 4 - len(file)
