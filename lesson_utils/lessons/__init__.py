"""The lessons: one package for each notebook. `classroom.course.LESSONS` finds them by this folder.

A lesson `my_lesson` with number 7 is `notebooks/07_my_lesson.ipynb` and the package `lesson_utils/lessons/my_lesson`:

- `__init__.py`: `LESSON = Lesson(7, "My lesson", "What is its question?", exercises=("my_exercise",))`
- `lab.py`: what the notebook calls `lab.`: live figures, stills, experiments
- `exercises.py`: `EXERCISES`, one `Exercise` for each name in the record
- `questions.txt`: the predictions and the checkpoint questions (`lesson_utils.classroom.asked` says how)

`common_mistakes` and `published_bugs` are what several of them share. All but the record is imported when asked for: a
notebook pays for its own lesson only.
"""
