"""For who teaches with the course: editions of the notebooks, and what a class misunderstood.

- `edition`: `python course.py edition --student|--solution [notebook ...]`
- `report`: `python course.py report FOLDER`
- `handed_in`: what a notebook holds, found without running anything
- `worker`: runs one stranger's notebook, in a process of its own
- `page`: what `report` writes
"""
