from lesson_utils.lessons import Lesson

LESSON = Lesson(0, "Start here", "How do you learn attention by taking it apart?", exercises=("weighted_average",))
