from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    2,
    "Scaled attention",
    "What does softmax(QKᵀ/√d_k)V do, and why the √d_k?",
    exercises=("softmax", "attention", "score_variance"),
)
