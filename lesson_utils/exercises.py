"""`check`, under the name by which notebooks import it: `from lesson_utils.exercises import check`."""

from lesson_utils.classroom.check import check as check
from lesson_utils.classroom.check import unaided as unaided
