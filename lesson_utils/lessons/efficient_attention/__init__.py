from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    7,
    "Efficient attention",
    "What does attention cost, and what can be saved?",
    exercises=("online_softmax", "rounded", "delta_step"),
)
