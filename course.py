"""Set up and open the course: `python course.py`. Everything it installs goes into .venv, beside this file.

Needs nothing but Python. Written so that old Pythons, too, can read it, and be told in one line what is missing.
"""

import argparse
import hashlib
import os
import shutil
import socket
import subprocess
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "Scripts", "python.exe") if os.name == "nt" else os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "installed.txt")  # what the last successful installation was made of
LOG = os.path.join(VENV, "install.log")


def main(words):
    parser = argparse.ArgumentParser(prog="course.py", description="Set up and open the course.")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser; print the address")
    parser.add_argument("--port", type=int, help="where JupyterLab listens (default: 8888, or the next free one)")
    parser.epilog = "Other commands: test [--parity] [pytest options], format, save [notebooks]. Further options go on."
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    if words and not words[0].startswith("-"):
        stop("There is no command '%s'; there are: %s, or none to open the course." % (words[0], ", ".join(COMMANDS)))
    options, further = parser.parse_known_args(words)
    return open_course(options, further)


def open_course(options, further):
    if options.port is not None:
        check_port(options.port)
        further = ["--ServerApp.port=%d" % options.port, "--ServerApp.port_retries=0"] + further
    install("lab")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        further = ["--allow-root"] + further  # as root in a container, JupyterLab would refuse to start
    if options.no_browser:
        further = ["--no-browser"] + further
    start = "/lab/tree/notebooks/00_start_here.ipynb"
    return run("-m", "jupyterlab", "--ServerApp.root_dir=" + ROOT, "--LabApp.default_url=" + start, *further)


def test(words):
    parity = ["parity"] if "--parity" in words else []  # PyTorch, to compare with: a large download
    install("lab", "test", *parity)
    return run("-m", "pytest", *[word for word in words if word != "--parity"])


def format_code(words):
    install("lab", "test")
    problems = run("-m", "ruff", "check", "--fix", ".")
    return run("-m", "ruff", "format", ".") or problems


def save(words):
    install("lab", "test")
    return run("-m", "lesson_utils.publish", *words)


COMMANDS = {"test": test, "format": format_code, "save": save}


def install(*extras):
    """Install what is asked for, once: a stamp in .venv tells what is there already."""
    if not os.path.exists(os.path.join(ROOT, "pyproject.toml")):
        stop("pyproject.toml is not beside course.py; run course.py where it came from, in the course's own folder.")
    facts, have = fingerprint(), []
    try:
        with open(STAMP) as stamp:
            known, have = stamp.readline().strip(), stamp.readline().split()
        if known != facts or subprocess.call([PYTHON, "-c", ""], stderr=subprocess.DEVNULL):
            have = []
    except OSError:  # nothing installed yet, or an installation cut short
        have = []
    if set(extras) <= set(have):
        return
    extras = sorted(set(extras) | set(have))
    print("Installing into .venv; this takes about half a minute ...")
    sys.stdout.flush()
    if not have:
        make_venv()
    wanted = "%s[%s]" % (ROOT, ",".join(extras))
    with open(LOG, "w") as log:
        pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--editable", wanted]
        failed = subprocess.call(pip, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)
    if failed:
        with open(LOG, errors="replace") as log:
            errors = [line.strip() for line in log if line.strip().lower().startswith("error")]
        reason = errors[-1] if errors else "pip ended with code %d." % failed
        stop("The installation failed: %s Check your connection and run this again; details: %s" % (reason, LOG))
    with open(STAMP, "w") as stamp:
        stamp.write(facts + "\n" + " ".join(extras) + "\n")


def fingerprint():
    """Changes when the installation has to be made again: an editable one points to its folder."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as project:
        content = project.read()
    return hashlib.sha256(content + ROOT.encode("utf-8") + sys.version.encode("utf-8")).hexdigest()


def make_venv():
    try:
        import ensurepip  # noqa: F401  # Debian and Ubuntu leave it out
        import venv
    except ImportError:
        stop("This Python can't make virtual environments; on Debian or Ubuntu: sudo apt install python3-venv")
    shutil.rmtree(VENV, ignore_errors=True)  # the remains of an earlier attempt
    try:
        venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        stop("Could not make the virtual environment %s: %s" % (VENV, error))


def check_port(port):
    if not 0 < port < 65536:
        stop("Port %d does not exist; choose one from 1024 to 65535, such as 8890." % port)
    probe = socket.socket()
    try:
        if os.name != "nt":  # a port that was in use a moment ago is free; on Windows this would hide one in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
    except (OSError, socket.error):
        stop("Port %d is in use or not allowed; choose another (--port %d), or close what uses it." % (port, port + 1))
    finally:
        probe.close()


def run(*words):
    return subprocess.call([PYTHON] + list(words), cwd=ROOT)


def stop(message):
    sys.stderr.write("course.py: " + message + "\n")
    sys.exit(1)


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        stop("The course needs Python 3.11 or newer; this is %d.%d. See python.org." % sys.version_info[:2])
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
