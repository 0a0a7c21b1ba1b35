from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    9,
    "A real model",
    "Do real heads do what we said?",
    exercises=(
        "induction_score",
        "induction_head",
        "patched_inputs",
        "rms_norm",
        "grouped_attention",
        "rotary_halves",
    ),
)
