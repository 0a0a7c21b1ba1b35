from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    5,
    "The full block",
    "What else does a Transformer need besides attention?",
    exercises=("layer_norm", "feed_forward", "pre_norm_block"),
)
