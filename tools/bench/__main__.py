"""`python -m tools.bench PART ...`: one part at a time; `--help` after its name says what it takes."""

import argparse
import os
from importlib import import_module

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description="Measure speed and memory.")
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)

    live = parts.add_parser("live", help="live figures against ipywidgets.interact, in JupyterLab")
    about = "figures whose notebook or name begins so, such as 05 or full_block.depth; default: all"
    live.add_argument("words", nargs="*", metavar="NAME", help=about)

    site = parts.add_parser("site", help="the built site: seconds until it can be used")
    site.add_argument("which", nargs="*", metavar="WHICH", help="book, lite or chat; default: all three")

    memory = parts.add_parser("memory", help="what a learner's kernel takes in each notebook, and the server beside it")
    memory.add_argument("names", nargs="*", metavar="NOTEBOOK", help="how their names begin; default: all")

    lesson = parts.add_parser("class", help="a class on its own JupyterHub: answers of sliders, memory, processors")
    lesson.add_argument("--students", type=int, default=30, help="default: %(default)s")
    lesson.add_argument("--moving", type=int, default=10, help="sliders at once; default: %(default)s")
    lesson.add_argument("--notebook", default="02_scaled_attention", help="default: %(default)s")
    lesson.add_argument("--minutes", type=int, default=0, help="of use by all after that; default: %(default)s")

    exercises = parts.add_parser("exercises", help="how long the checks of exercises take")
    exercises.add_argument("names", nargs="*", metavar="EXERCISE", help="default: all")

    options = vars(parser.parse_args())
    part = options.pop("part")
    if part in ("memory", "exercises"):  # read once, when NumPy is loaded
        os.environ.update(dict.fromkeys(THREADS, "1"))
    import_module(f"tools.bench.{'classroom' if part == 'class' else part}").run(**options)


if __name__ == "__main__":
    main()
