"""Notebook 05: what a Transformer needs besides attention."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.full_block.deep import *
from lesson_utils.lessons.full_block.diagram import *
from lesson_utils.lessons.full_block.ledger import *
from lesson_utils.lessons.full_block.places import *
from lesson_utils.lessons.full_block.reading import *
from lesson_utils.lessons.full_block.stream import *
from lesson_utils.lessons.full_block.switchboard import *
from lesson_utils.lessons.full_block.wirings import *
