"""Tools for teachers: handouts, and a report of a class's mistakes.

- `edition`: `python course.py edition --student|--solution [notebook ...]`
- `report`: `python course.py report FOLDER`
- `handed_in`: finds the exercises in a notebook without running it
- `worker`: runs one stranger's notebook, in a process of its own
- `jail`: keeps that process away from your files, processes and network
- `kernel`: limits that Linux itself keeps
- `page`: the table and the page that `report` writes
"""
