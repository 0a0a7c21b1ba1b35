from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    10,
    "Debugging clinic",
    "It runs. Is it right?",
    exercises=(
        "leak_across_rows",
        "cache_parity",
        "triage",
        *(f"mend_{part}" for part in ("merge", "mask", "block", "groups")),
    ),
    answers=("diagnosis",),
)
