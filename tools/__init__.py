"""The tools of maintainers and teachers. No learner installs them; `python -m tools` lists the commands.

- `start`: what `course.py` looks at before it opens the course
- `save`: runs the notebooks and stores their outputs, and writes tables of notebooks
- `release`: sees that a version is ready to be released
- `prose`: counts the minutes that a learner needs for a notebook
- `train`: trains what comes trained, and stores it beside its lesson
- `teacher`: handouts, and a report of a class's mistakes
- `site`: the book, and JupyterLite
- `bench`: measures what we claim about speed and memory
- `chaos`: walks through notebooks as no learner would, and moves live figures thousands of times
- `browser`: drives a notebook in JupyterLab in headless Chromium, and pages in Firefox, for tests, bench and chaos
"""
