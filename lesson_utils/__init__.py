"""Attention and Transformers in plain NumPy, and the classroom around them.

The maths (NumPy only):

- `ops`: softmax and what the course measures about it
- `attention`: masks, score functions, scaled dot-product and multi-head attention

The classroom (uses the maths, never the reverse):

- `plots`: the house style; arrays in, pictures with alternative text out
- `live`: live figures, a draw-once picture under sliders
- `labs`: the live figures and measurements of each notebook
- `exercises`: exercises that mark themselves and name the mistake
- `quiz`: checkpoint questions with feedback for every option
- `bench`: `python -m lesson_utils.bench`, side-by-side ratios
- `publish`: `python course.py save`, notebooks committed with honest outputs

Notebooks write `from lesson_utils import attention, plots`. Importing has no side effects.
"""
