"""Three texts to measure a model on. Two were written for this, so no model has learnt them by heart."""

from lesson_utils.maths import tasks

STORY = """\
The lighthouse on Corran Head had been dark for eleven years when Marta Lindqvist bought it at an auction for less than
the price of a car. Nobody else had bid. The roof leaked, the stairs were missing every fourth step, and the last keeper
had taken the door with him when he left. She arrived in October with two suitcases, a box of tools and a grey dog
called Biscuit, who refused to go in.

The first night they slept in the van. Rain drummed on the metal, and far below the sea pushed at the rocks as if it
wanted to move them. In the morning Marta climbed to the top, testing each step with her foot. The great lamp was still
there, under a sheet that had once been white. She pulled it away, and a hundred small rainbows ran over the walls. The
glass was whole. Biscuit barked from the doorway, twice, as though he had been right about something.

She began with the roof. A man named Oskar, who delivered the mail on a bicycle, told her where to find slate, and on
the third day he stayed to help. He did not talk much. On the fifth day he brought his father's ladder and a pot of
soup. "People say the light was put out because ships no longer need it," he said while they ate. "That is not why."
Marta waited. The dog watched the soup.

"The keeper had a daughter," said Oskar at last. "She went out in a small boat one evening, and a fog came. He kept the
lamp burning for three weeks, day and night, until there was no oil left on the whole island. Then he took the door off
its hinges, so that she would never find it locked, and he walked to the village and did not speak again."

Marta looked at the empty frame where the door had been. She had planned to order a new one that very week, oak, with
an iron handle. Instead she asked where one could buy oil. Oskar put down his spoon. It took them until December to
clean the lamp, to mend the clockwork that turned it and to carry forty cans up the stairs, which now had all their
steps. On the shortest day of the year, at four in the afternoon, Marta lit the wick. The beam went out over the water,
slow and yellow, and came round again. In the village people stood in front of their houses. Nobody said anything.

Near midnight the dog lifted his head and looked at the doorway.
"""

REPORT = """\
To the members of the town council. This is a short account of what we found when we measured the traffic on the old
bridge between March and September, and of what we think should be done about it.

The bridge was built for carts and for people on foot. It is four metres wide, and since the new road was closed last
winter about six thousand vehicles cross it on a working day. In spring we put two counters at each end. They showed
three things that nobody had expected. First, most of the traffic does not come from the town at all: seven of ten
drivers enter from the motorway and leave again within twenty minutes. Second, the number of bicycles has doubled since
the count of five years ago, although there is no lane for them. Third, the worst hour is not in the morning, when
people go to work, but between three and four in the afternoon, when the two schools close.

We also asked an engineer to look at the stones. Her report is attached. She writes that the arches are sound, but that
the mortar on the northern side has been washed out by water that should have run off through two drains; both are
blocked. If they are cleared this year, the repair will cost about as much as painting the town hall. If they are left,
the parapet will have to be rebuilt within ten years, and the bridge closed for a summer.

We considered four measures. A traffic light at each end would be cheap, but the queue would reach the hospital. A toll
would send drivers through the village of Ansby, which has done nothing to deserve it. Closing the bridge to cars
altogether was the wish of many people who wrote to us, and of nearly as many shopkeepers the fear. What we recommend is
the fourth: to close it to cars for two hours in the afternoon on school days, beginning after the holidays, and to
count again for three months. The bus would be allowed to cross. So would the doctor, and anyone who lives on the island
itself.

The cost is small. Two gates, one key for each household, and a person to open and close them. We have spoken with the
schools, and the older pupils would like to do it themselves. Whatever the council decides, the drains should be cleared
before the first frost, because that work can't wait for an agreement about anything else.
"""


def texts() -> dict[str, str]:
    """Return three texts by their names, about 500 tokens each."""
    topics = tasks.python_text()
    start = topics.index("If keyword arguments are present, they")
    return {"story": STORY, "report": REPORT, "manual": topics[start : start + 2600]}
