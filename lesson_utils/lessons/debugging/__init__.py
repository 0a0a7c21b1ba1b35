from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    10,
    "Debugging clinic",
    "It runs. Is it right?",
    exercises=(
        "triage",
        *(f"mend_{part}" for part in ("merge", "hiding", "mask", "norm", "block", "step", "groups", "attention")),
    ),
)
