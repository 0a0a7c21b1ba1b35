"""For who teaches with the course: what a class misunderstood, from the notebooks it handed in; editions of notebooks.

- `report`: `python course.py report FOLDER`
- `handed_in`: what a notebook holds, found without running anything
- `worker`: runs one stranger's notebook, in a process of its own
- `page`: what `report` writes
"""
