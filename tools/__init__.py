"""What maintainers use, and no learner installs.

- `browser`: a notebook in JupyterLab in headless Chromium, for the tests and the bench
- `save`: `python course.py save`, notebooks committed with honest outputs
- `site`: `python course.py site`, the book and JupyterLite
- `bench`: `python -m tools.bench`, side-by-side ratios
"""
