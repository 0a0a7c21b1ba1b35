from lesson_utils.classroom.course import Lesson

LESSON = Lesson(0, "Start here", "How does a machine find out what “it” is?", exercises=("weighted_average",))
