from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    8,
    "Train a Transformer",
    "Does it really work?",
    exercises=("loss_backward", "softmax_backward", "attention_backward", "adam_step"),
)
