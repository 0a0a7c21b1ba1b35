from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    10,
    "Debugging clinic",
    "It runs. Is it right?",
    exercises=("cache_parity", "first_difference", "mend_mask"),
    answers=("diagnosis",),
    numbered=("cache_parity", "diagnosis", "first_difference", "finds_bugs", "mend_mask"),
)
