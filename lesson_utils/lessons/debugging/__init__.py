from lesson_utils.classroom.course import Lesson

MENDS = tuple(f"mend_{part}" for part in ("merge", "mask", "block", "groups"))
LESSON = Lesson(
    10,
    "Debugging clinic",
    "It runs. Is it right?",
    exercises=("leak_across_rows", "cache_parity", "triage", *MENDS),
    answers=("diagnosis",),
    numbered=("leak_across_rows", "cache_parity", "diagnosis", "triage", "finds_bugs", *MENDS),
)
