"""What the text of notebook 08 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.training.survival import claims_of_rates

# %% train
as_written(STEPS == 1000, works=right >= 0.99, rung=50 < below < 120)

# %% places
share = (lab.predicted(film.at(STEPS * 8 // 100), (dates, answers)) == answers[:, 1:]).mean(axis=0)
as_written(STEPS == 1000, frame=share[[1, 4, 10]].min() > 0.8, rest=share[[2, 3, 8, 9]].max() < 0.7)

# %% unseen-code
said = {written: lab.translate(model, written) for written in known + mixed + others}
mixes = [said[written] == "2021-03-03" for written in known + mixed]
as_written(STEPS == 1000, mixes=np.mean(mixes) > 0.7, order=said["2021/3/3"] != "2021-03-03")

# %% sum-code
as_written(right=off["yours"] < 1e-9, found=min(off["all zeros"], off["plain mean"]) > 1e-2)

# %% page-check
as_written(all_right=max(errors) < 1e-7)

# %% rates-larger
as_written(**claims_of_rates())

# %% heads-code
mean = {h: np.mean(x) for h, x in share.items()}
as_written(hill=min(mean[4], mean[8]) > max(mean[1], mean[16]), low=min(mean.values()) > 0.7)
