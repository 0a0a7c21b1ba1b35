from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    9,
    "A real model",
    "Do real heads do what we said?",
    exercises=("induction_head", "knock_out", "induction_score", "patched_inputs", "moved_message"),
)
