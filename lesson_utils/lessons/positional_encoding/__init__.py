from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    4,
    "Positional encoding",
    "How does a set become a sequence?",
    exercises=("sinusoids", "rotate", "slow_hands"),
)
