"""Set up and open the course. Everything is installed into .venv, beside this file.

python course.py                        open the course in JupyterLab, in copies of the notebooks that are yours
    --edit                              the notebooks themselves, to change the course
    --no-browser                        print the address, open no browser
    --port N                            listen there (otherwise: on 8888, or the next port that is free)
    ...                                 other options are handed on to JupyterLab, such as --ip
python course.py real                   fetch a published model for notebook 09 (98 MB)
python course.py test [...]             test the course, every notebook included, in about five minutes
    --fast                              the maths, the exercises and the live figures only, in about one
    --rest                              what that leaves out: long trainings, platforms, the site (half an hour)
    --parity                            compare with PyTorch, too (a large download)
    --site, --hub, --style              install what some tests need; a test that is skipped names it
    ...                                 files and options are handed on to pytest; a file named is run whole
"""

# Standard library only, and nothing that Python 3.6 can't parse: old Pythons are told in one line what is missing.
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
VERSION = "{}.{}".format(*sys.version_info)
PYTHON = os.path.join(VENV, "Scripts", "python.exe") if os.name == "nt" else os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "installed.json")  # what the last complete installation was made of
LOG = os.path.join(VENV, "install.log")
NOTEBOOKS = os.path.join(ROOT, "notebooks")
MINE = os.path.join(ROOT, "my_notebooks")  # the learner's copies; git ignores them
SETTINGS = {  # no question about news first; no blank page at the end; line numbers, because messages name them
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"scrollPastEnd": False, "codeCellConfig": {"lineNumbers": True}},
}
PART = ".course-part"  # how names end of files that are being written
# What the course imports from the start: somebody may have uninstalled it, and a Python upgraded under .venv still
# starts, but looks for its packages elsewhere.
LIBRARIES, LAB = ("numpy", "matplotlib", "ipywidgets", "tqdm"), ("jupyterlab", "threadpoolctl")
ARE_THERE = "import pip, sys, importlib.util as found; sys.exit(not all(map(found.find_spec, sys.argv[1:])))"
TEST_EXTRAS = ("parity", "site", "hub", "style")  # large, and needed by few tests


def main(words):
    command = "open" if not words or words[0].startswith("-") else words.pop(0)
    if command == "open" and not {"-h", "--help"} & set(words):
        return open_course(words)
    if command == "real":
        install("lab")
        return run("lesson_utils.maths.pretrained")
    if command == "test":
        return test(words)
    # Imported here, because old Pythons can't parse it. It needs nothing but the standard library.
    from tools.__main__ import COMMANDS, listed

    if command == "open":
        sys.stdout.write(__doc__ + listed("python course.py"))
        return 0
    if command not in COMMANDS:
        stop(f"There is no command '{command}'. For those there are: python course.py --help")
    install(*COMMANDS[command].extras)
    return run("tools", command, *words, here=True)


def open_course(words):
    from tools.start import check_port, say_address  # here, because old Pythons can't parse it

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("--port", nargs="?", const="")
    options, words = parser.parse_known_args(words)
    if options.port is not None:
        check_port(options.port, stop)
        words += [f"--ServerApp.port={options.port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container, say; JupyterLab would refuse to start
        words += ["--allow-root"]
    install("lab")
    put(os.path.join(VENV, "share", "jupyter", "lab", "settings", "overrides.json"), json.dumps(SETTINGS))
    say_address(ROOT)
    if not options.edit:
        copy_notebooks()
    folder = "notebooks" if options.edit else "my_notebooks"
    start = f"/lab/tree/{folder}/00_start_here.ipynb"
    at_once = "--ServerApp.kernel_websocket_connection_class=tools.at_once.AtOnce"
    return run("jupyterlab", f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url={start}", at_once, *words)


def copy_notebooks():
    """Copy the notebooks for the learner. No copy is ever overwritten: a newer version is put beside it."""
    from tools.start import version_of, without_outputs

    os.makedirs(MINE, exist_ok=True)
    record = os.path.join(MINE, ".versions.json")  # which versions of each notebook have been copied
    try:
        copied = {name: versions for name, versions in json.loads(read(record)).items() if isinstance(versions, list)}
    except (OSError, ValueError, AttributeError, RecursionError):  # not there, or damaged: it is written anew
        copied = {}
    for left in (os.path.join(folder, name) for folder, _, names in os.walk(MINE) for name in names):
        if left.endswith(PART) and time.time() - os.path.getmtime(left) > 60:  # by a start that was killed
            os.remove(left)
    for name in sorted(os.listdir(NOTEBOOKS)):
        original, copy = os.path.join(NOTEBOOKS, name), os.path.join(MINE, name)
        if os.path.isdir(original) and not name.startswith("."):  # pictures
            shutil.copytree(original, copy, dirs_exist_ok=True, copy_function=lambda a, b: put(b, read(a)))
        if not name.endswith(".ipynb"):
            continue
        version, versions = version_of(original), copied.setdefault(name, [])
        if not os.path.lexists(copy):
            put(copy, without_outputs(original))
        elif version not in [*versions, version_of(copy)]:
            number = 2
            while os.path.lexists(copy) and version_of(copy) != version:  # which a start that was killed had put there
                copy = os.path.join(MINE, f"{name[: -len('.ipynb')]} (version {number}).ipynb")
                number += 1
            if not os.path.lexists(copy):
                put(copy, without_outputs(original))
                why = "has changed: the new version" if versions else "differs from yours: the course's version"
                print(f"{name} {why} is {os.path.relpath(copy, ROOT)}. Yours is as you left it.", flush=True)
        if version not in versions:
            versions.append(version)
    put(record, json.dumps(copied))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, content):
    """Write a file beside its place and move it there: at every moment the old one stands there, or the new one."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    beside = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}{PART}")
    try:
        if os.path.isfile(path) and read(path) == content:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing in it
        os.replace(beside, path)
    except OSError as error:
        stop(f"Could not write {path} ({error.strerror}). See that there is room and that you may write there.")
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def test(words):
    options = {word for word in words if word in ("--fast", "--rest", *("--" + extra for extra in TEST_EXTRAS))}
    words = [word for word in words if word not in options]
    install("lab", "test", *(extra for extra in TEST_EXTRAS if {"--rest", "--" + extra} & options))
    os.environ.setdefault("COURSE_TRAIN", "no")  # notebooks take the models that come trained, as stored outputs do
    named = any(os.path.exists(os.path.join(ROOT, word.split("::")[0])) for word in words)
    if named and not options & {"--fast", "--rest"}:
        return run("pytest", *words)
    command = ["pytest", "-n", str(min(os.cpu_count() or 2, 4)), "-m"]
    if "--fast" in options:
        command += ["not slow and not long_form"] + ([] if named else ["tests"])
    elif "--rest" in options:
        command += ["(long_form or parity) and not own_job"]
    else:
        command += ["not long_form"]
    for library in ("OPENBLAS", "OMP", "MKL"):  # processes that share the cores are not to have threads of their own
        os.environ.setdefault(library + "_NUM_THREADS", "1")
    return run(*command, *words)


def install(*extras):
    """Install these extras of pyproject.toml into .venv, beside those that are there; do nothing if they all are."""
    try:
        project = hashlib.sha256(read(os.path.join(ROOT, "pyproject.toml"))).hexdigest()
    except OSError:
        stop("pyproject.toml is not beside course.py. Run course.py in the course's own folder.")
    place = [ROOT, VERSION]  # an editable installation points to its folder
    old = read_stamp(place)
    if old.get("project") == project and set(extras) <= set(old["extras"]):
        return
    new = {"place": place, "project": project, "extras": sorted(set(extras).union(old.get("extras", [])))}
    if old:
        os.remove(STAMP)  # should this be stopped half-way, no stamp speaks for what it left
    problem = put_in("-e", f".[{','.join(new['extras'])}]", made=bool(old))
    put(STAMP, json.dumps(old if problem else new))  # what gives up by itself puts back what was there
    if problem:
        stop(f"pip failed ({problem}). Check your connection and run this again; pip's full output: {LOG}")


def put_in(*words, made):
    """Install into .venv, which is `made` already or not, by uv, which takes seconds, or else by pip.

    Return what went wrong, or None.
    """
    uv = shutil.which("uv")
    if uv:
        with Progress("uv"):
            made = made or make_venv_by(uv)
            if made and call(uv, "pip", "install", "--python", PYTHON, *words) == 0:
                return None
        # uv does not know pip's settings, such as the address of a company's own packages.
        print(f"uv failed ({last_error() if made else 'it could not make .venv'}); pip tries now.")
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
    """A line that says what is being installed. On a terminal it moves, with the last step and the seconds."""

    def __init__(self, installer):
        self.about = f"Installing into .venv with {installer}"
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
            line = f"{self.about}: {last_step()} ({time.monotonic() - self.start:.0f} s)"
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
    """Return what pip or uv is doing, read from the last lines of its output."""
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
        return f"installing {what.count(',') + 1} packages"
    if step in ("Resolved", "Prepared"):  # 94 packages in 350ms
        return ("downloading " if step == "Resolved" else "installing ") + what.split(" in ")[0]
    return step.lower() + " " + re.match(r"(?:[\w.]|-(?=\D))*", what).group(0)


def read_stamp(place):
    """Return what is installed: nothing, if it was for another place or Python, or if .venv does not work."""
    try:
        stamp = json.loads(read(STAMP))
        ours = stamp["place"] == place and set(stamp["extras"]) <= {"lab", "test", *TEST_EXTRAS}
        needed = LIBRARIES + (LAB if "lab" in stamp["extras"] else ())
        if ours and subprocess.call([PYTHON, "-c", ARE_THERE, *needed], stderr=subprocess.DEVNULL) == 0:
            return stamp
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # not there, or damaged: .venv is made anew
        pass
    return {}


def make_venv_by(uv):
    """Make .venv by uv, with pip in it (--seed) for %pip in notebooks; return whether that worked."""
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
        stop(f"Could not make .venv ({error}). Close what uses it, see that you may write there, and run this again.")


def last_error():
    """Return why pip or uv gave up, as its log says."""
    with open(LOG, encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    # How new pips end, and how a crash begins: neither names the cause.
    vague = ("ERROR: Failed to build", "ERROR: Exception:")
    errors = [line[len("ERROR: ") :] for line in lines if line.startswith("ERROR: ") and not line.startswith(vague)]
    return (errors or lines or ["it said nothing"])[-1]


def run(*words, here=False):
    """Run a module with the Python of .venv, and return what it exits with.

    It stands in the course's folder, or else `here`, where the user stands; files that lie there are not imported (-P).
    """
    command = [PYTHON, "-P", "-m"] if here else [PYTHON, "-m"]
    process = subprocess.Popen([*command, *words], cwd=None if here else ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # it got the Ctrl-C, too, and ends in its own way: JupyterLab asks first
            pass


def stop(message):
    sys.stderr.write(f"course.py: {message}\n")
    sys.exit(1)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # nobody has looked at pyproject.toml yet
        stop(f"The course needs Python 3.11 or newer (see python.org), and this is {VERSION}.")
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:  # a file where a folder should be, a full disk, somebody else's folder
        stop(f"{error}. See that there is room and that you may write there, and run this again.")
