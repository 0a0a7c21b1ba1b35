from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    7,
    "Efficient attention",
    "What does attention cost, and what can be saved?",
    exercises=("online_softmax", "rolling_mask", "rounded", "cache_bytes", "delta_step"),
)
