from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    3,
    "Multi-head",
    "Why eight small looks instead of one big one?",
    exercises=("split_heads", "multi_head_attention", "without_head"),
)
