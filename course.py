"""Set up and open the course. Everything is installed into .venv, beside this file.

python course.py                        open the course in JupyterLab, in copies of the notebooks that are yours
    --edit                              the notebooks themselves, to change the course
    --no-browser                        print the address, open no browser
    --port N                            listen there (otherwise: on 8888, or the next port that is free)
    ...                                 other options are handed on to JupyterLab, such as --ip
python course.py real                   fetch a published model for lesson_utils.pretrained (98 MB)
python course.py test [...]             test the course, every notebook included, in about five minutes
    --fast                              the maths, the exercises and the live figures only, in about one
    --rest                              what that leaves out: long trainings, platforms, the site (half an hour)
    --parity                            compare with PyTorch, too (a large download)
    ...                                 files and options are handed on to pytest; a file named is run whole
python course.py format                 format the code, and mend what can be mended
python course.py save [notebook ...]    run the notebooks (all, if none is named) and store their outputs
    --film                              only draw README's moving picture anew
python course.py edition [notebook ...] for teachers: write notebooks as handouts (all, if none is named)
    --student                           without hints and solutions
    --solution                          with every exercise filled in
python course.py report FOLDER          for teachers: which mistakes a class made, in the notebooks it handed in
python course.py address [OWNER/REPO]   write the repository's address wherever it stands (default: git's origin)
python course.py site                   build the site that is published: the book, and JupyterLite
    --no-lite                           the book only
python course.py serve                  show that site on this machine
    --port N                            there (otherwise: on any port that is free)
"""

# Standard library only, and nothing that old Pythons can't parse: they, too, are told in one line what is missing.
import argparse
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "Scripts", "python.exe") if os.name == "nt" else os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "installed.json")  # what the last complete installation was made of
LOG = os.path.join(VENV, "install.log")
SITE = os.path.join(ROOT, "docs", "_build", "site")
NOTEBOOKS = os.path.join(ROOT, "notebooks")
MINE = os.path.join(ROOT, "my_notebooks")  # the learner's copies; git ignores them
NEVER = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


def main(words):
    command = "open" if not words or words[0].startswith("-") else words.pop(0)
    if command == "open" and {"-h", "--help"} & set(words):
        sys.stdout.write(__doc__)
        return 0
    if command == "open":
        return open_course(words)
    if command == "real":
        install("lab")
        return run("lesson_utils.pretrained")
    if command == "test":
        return test(words)
    if command == "format":
        install("style")
        problems = run("ruff", "check", "--fix", *words or ["."])  # first: what it mends may need formatting
        return run("ruff", "format", *words or ["."]) or problems
    if command == "save":
        install("lab", "test")
        return run("tools.save", *words)
    if command in ("edition", "report"):
        install("lab")
        named = [word for i, word in enumerate(words) if os.path.exists(word) or words[i - 1 : i] == ["--to"]]
        return run("tools.teacher." + command, *[os.path.abspath(w) if w in named else w for w in words])
    if command == "address":
        return write_address(words)
    if command == "site":
        install("site")
        return run("tools.site.build", *words)
    if command == "serve":
        return serve(words)
    stop("There is no command '%s'. For those there are: python course.py --help" % command)


def open_course(words):
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("--port", nargs="?", const="")
    options, words = parser.parse_known_args(words)
    if options.port is not None:
        check_port(options.port)
        words += ["--ServerApp.port=" + options.port, "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container, say; JupyterLab would refuse to start
        words += ["--allow-root"]
    install("lab")
    ask_nothing()
    say_address()
    if not options.edit:
        copy_notebooks()
    start = "/lab/tree/%s/00_start_here.ipynb" % ("notebooks" if options.edit else "my_notebooks")
    return run("jupyterlab", "--ServerApp.root_dir=" + ROOT, "--LabApp.default_url=" + start, *words)


def ask_nothing():
    """No question about news lies over the first notebook: a default of the JupyterLab in .venv, and of no other."""
    folder = os.path.join(VENV, "share", "jupyter", "lab", "settings")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "overrides.json"), "w") as file:
        json.dump(NEVER, file)


def copy_notebooks():
    """Copies to work in. None is ever overwritten: where the course has a newer version, that is put beside it."""
    os.makedirs(MINE, exist_ok=True)
    record = os.path.join(MINE, ".versions.json")  # which versions of each notebook have been copied
    try:
        with open(record) as file:
            copied = json.load(file)
    except (OSError, ValueError):
        copied = {}
    for name in sorted(os.listdir(NOTEBOOKS)):
        original, copy = os.path.join(NOTEBOOKS, name), os.path.join(MINE, name)
        if os.path.isdir(original) and not name.startswith("."):  # pictures
            shutil.copytree(original, copy, dirs_exist_ok=True)
        if not name.endswith(".ipynb"):
            continue
        version, versions = version_of(original), copied.setdefault(name, [])
        if not os.path.exists(copy):
            shutil.copyfile(original, copy)
        elif version not in versions + [version_of(copy)]:
            number = 2
            while os.path.exists(copy):
                copy = os.path.join(MINE, "%s (version %d).ipynb" % (name[: -len(".ipynb")], number))
                number += 1
            shutil.copyfile(original, copy)
            new = os.path.relpath(copy, ROOT)
            print("%s has changed: the new version is %s. Yours is as you left it." % (name, new))
        if version not in versions:
            versions.append(version)
    with open(record, "w") as file:
        json.dump(copied, file)
    sys.stdout.flush()


def version_of(notebook):
    """A hash of its text and code; outputs, which running it changes, don't count."""
    try:
        with open(notebook, "rb") as file:
            cells = json.loads(file.read().decode("utf-8"))["cells"]
        content = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
    except (ValueError, KeyError, TypeError):  # not a notebook any more
        return None
    return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()


def test(words):
    forms = [word for word in ("--fast", "--rest", "--parity") if word in words]
    words = [word for word in words if word not in forms]
    files = [word for word in words if os.path.exists(os.path.join(ROOT, word.split("::")[0]))]
    extras = ["lab", "test"]
    extras += ["parity"] if "--parity" in forms or "--rest" in forms else []
    extras += ["site"] if "--rest" in forms or any("site" in word for word in files) else []
    extras += ["hub"] if "--rest" in forms or any("bench" in word for word in files) else []
    extras += ["style"] if "--rest" in forms or any("style" in word for word in files) else []
    install(*extras)
    if files and "--fast" not in forms and "--rest" not in forms:
        return run("pytest", *words)
    options = ["-n", str(min(os.cpu_count() or 2, 4)), "--dist=loadfile", "--no-loadscope-reorder"]
    if "--fast" in forms:
        options += ["-m", "not slow and not long_form"] + ([] if files else ["tests"])
    elif "--rest" in forms:
        options += ["-m", "(long_form or parity) and not own_job"]
    else:
        options += ["-m", "not long_form"]
        os.environ.setdefault("COURSE_TRAIN", "no")  # notebooks take the models that come trained
    for library in ("OPENBLAS", "OMP", "MKL"):  # processes that share the cores are not to have threads of their own
        os.environ.setdefault(library + "_NUM_THREADS", "1")
    return run("pytest", *(options + words))


def serve(words):
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    parser = argparse.ArgumentParser(prog="course.py serve", allow_abbrev=False)
    parser.add_argument("--port", nargs="?", const="", help="default: any that is free")
    port = parser.parse_args(words).port
    if port is not None:
        check_port(port)
    if not os.path.exists(os.path.join(SITE, "index.html")):
        stop("There is no site to serve yet. Build it first: python course.py site")
    # On some Windows machines the registry says otherwise, and browsers then refuse them.
    SimpleHTTPRequestHandler.extensions_map.update({".js": "text/javascript", ".wasm": "application/wasm"})
    handler = partial(SimpleHTTPRequestHandler, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", int(port or 0)), handler) as server:
        print("The site is at http://127.0.0.1:%d/ (Ctrl-C ends it)" % server.server_address[1])
        sys.stdout.flush()
        server.serve_forever()


def write_address(words):
    address = words[0] if words else origin()
    if not address:
        stop("git knows no origin on GitHub. Name the repository: python course.py address OWNER/REPO")
    from tools import save

    try:
        changed = save.write_address(address)
    except ValueError as error:
        stop(error)
    print("%s: %d files changed." % (address, changed))


def say_address():
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        unknown = b"https://github.com/OWNER/REPO" in file.read()
    if unknown and origin():
        print("Links still lead to OWNER/REPO. To have them lead to %s: python course.py address" % origin())
        sys.stdout.flush()


def origin():
    """OWNER/REPO on GitHub that this folder was cloned from, or None."""
    if not os.path.exists(os.path.join(ROOT, ".git")):  # or git would answer for a repository around it
        return None
    try:
        url = subprocess.check_output(["git", "remote", "get-url", "origin"], cwd=ROOT, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    pattern = r"(?:https://(?:[^/@]+@)?|git@|ssh://git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
    match = re.match(pattern + r"\Z", url.decode("utf-8").strip())
    return match.group(1) if match else None


def check_port(port):
    if not (port.isdecimal() and 0 < int(port) < 65536):
        stop("'%s' is not a port. Give a number from 1024 to 65535, such as --port 8890." % port)
    with socket.socket() as probe:
        if os.name != "nt":  # without it, a port just left would seem taken; on Windows, with it, a taken one free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except OSError:
            stop("Port %s is taken or not allowed. Give another, or leave --port out, and a free one is found." % port)


def install(*extras):
    """Have these extras in .venv, beside those that are there already; when nothing is to be done, do nothing."""
    try:
        with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
            project = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        stop("pyproject.toml is not beside course.py. Run course.py in the course's own folder.")
    place = [ROOT, "%d.%d" % sys.version_info[:2]]  # an editable installation points to its folder
    old = read_stamp(place)
    if old.get("project") == project and set(extras) <= set(old["extras"]):
        return
    new = {"place": place, "project": project, "extras": sorted(set(extras).union(old.get("extras", [])))}
    if old:
        os.remove(STAMP)  # should this be stopped half-way, no stamp speaks for what it left
    problem = put_in("-e", ".[%s]" % ",".join(new["extras"]), made=bool(old))
    with open(STAMP, "w") as file:
        json.dump(old if problem else new, file)  # what gives up by itself puts back what was there
    if problem:
        stop("pip failed (%s). Check your connection and run this again; pip's full output: %s" % (problem, LOG))


def put_in(*words, made):
    """Install into .venv, which is `made` already or not: by uv, which takes seconds, or else by pip.

    Returns what went wrong, or None.
    """
    uv = shutil.which("uv")
    if uv:
        with Progress("uv"):
            made = made or make_venv_by(uv)
            if made and call(uv, "pip", "install", "--python", PYTHON, *words) == 0:
                return None
        # uv does not know pip's settings, such as the address of a company's own packages.
        print("uv failed (%s); pip tries now." % (last_error() if made else "it could not make .venv"))
        sys.stdout.flush()
    with Progress("pip"):
        if not made:
            make_venv()
        if call(PYTHON, "-m", "pip", "install", "--disable-pip-version-check", *words) == 0:
            return None
    return last_error()


def call(*command):
    with open(LOG, "w") as log:
        return subprocess.call(list(command), stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)


class Progress:
    """While it is entered, a line on the terminal moves: what is being done, and for how long. In a file, it stands."""

    def __init__(self, installer):
        self.about = "Installing into .venv with %s" % installer
        self.moves = sys.stdout.isatty()

    def __enter__(self):
        self.start, self.width, self.ended = time.monotonic(), 0, threading.Event()
        if self.moves:
            self.thread = threading.Thread(target=self.move, daemon=True)
            self.thread.start()
        else:
            self.write(self.about + " ...\n")
        return self

    def move(self):
        columns = shutil.get_terminal_size().columns - 1  # a line that is broken in two can't be written over
        while True:
            line = "%s: %s (%d s)" % (self.about, last_step(), time.monotonic() - self.start)
            self.write("\r" + line[:columns].ljust(self.width))
            self.width = len(line[:columns])
            if self.ended.wait(0.25):
                return

    def __exit__(self, *error):
        self.ended.set()
        if self.moves:
            self.thread.join()
            self.write("\r" + " " * self.width + "\r")

    def write(self, text):
        sys.stdout.write(text)
        sys.stdout.flush()


def last_step():
    """What pip or uv is doing, by what it has said last."""
    try:
        with open(LOG, encoding="utf-8", errors="replace") as log:
            said = log.read()
    except OSError:  # .venv is being made
        return "making .venv"
    steps = re.findall(r"^ *(Collecting|Downloading|Building|Installing|Resolved|Prepared) (.*)", said, re.MULTILINE)
    if not steps:
        return "looking for packages"
    step, what = steps[-1]
    if step == "Installing" and "," in what:  # collected packages: a, b, c
        return "installing %d packages" % (what.count(",") + 1)
    if step in ("Resolved", "Prepared"):  # 94 packages in 350ms
        return ("downloading " if step == "Resolved" else "installing ") + what.split(" in ")[0]
    return step.lower() + " " + re.match(r"(?:[\w.]|-(?=\D))*", what).group(0)


def read_stamp(place):
    """What is installed: nothing, if it was for another place or Python, or if .venv does not work."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
        # A Python upgraded under .venv still starts, but looks for its packages elsewhere: hence `import pip`.
        if stamp["place"] == place and subprocess.call([PYTHON, "-c", "import pip"], stderr=subprocess.DEVNULL) == 0:
            return stamp
    except (OSError, ValueError, KeyError):
        pass
    return {}


def make_venv_by(uv):
    """With pip in it (--seed), for %pip in notebooks."""
    shutil.rmtree(VENV, ignore_errors=True)
    base = getattr(sys, "_base_executable", None) or sys.executable
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.call([uv, "venv", "--seed", "--python", base, VENV], cwd=ROOT, **quiet) == 0


def make_venv():
    try:
        import ensurepip  # noqa: F401  # this is what Debian leaves out
        import venv
    except ImportError:
        stop("This Python lacks venv. On Debian and Ubuntu: sudo apt install python3-venv; elsewhere: see python.org.")
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        venv.create(VENV, with_pip=True, symlinks=os.name != "nt")  # symlinks where `python -m venv` has them
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        stop("Could not make .venv (%s). Close what uses it, see that you may write there, and run this again." % error)


def last_error():
    """Why pip, or uv, gave up."""
    with open(LOG, encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    # How new pips end, and how a crash begins: neither names the cause.
    vague = ("ERROR: Failed to build", "ERROR: Exception:")
    errors = [line[len("ERROR: ") :] for line in lines if line.startswith("ERROR: ") and not line.startswith(vague)]
    return (errors or lines or ["it said nothing"])[-1]


def run(*words):
    process = subprocess.Popen([PYTHON, "-m"] + list(words), cwd=ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # it got the Ctrl-C, too, and ends in its own way: JupyterLab asks first
            pass


def stop(message):
    sys.stderr.write("course.py: %s\n" % message)
    sys.exit(1)


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        stop("The course needs Python 3.11 or newer (see python.org), and this is %d.%d." % sys.version_info[:2])
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
