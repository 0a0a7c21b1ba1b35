"""The address stands in one place; saved notebooks do not differ from run to run."""

import re

import nbformat
import pytest

from tools import save
from tools.site import readme_film

COPIES = save.texts()


@pytest.mark.parametrize("path", COPIES, ids=lambda p: p.name)
def test_all_copies_of_the_address_agree(path):
    text = path.read_text(encoding="utf-8")
    found = save.ADDRESSES.findall(text)
    assert len(found) >= 3 or path.suffix != ".ipynb", "copy the links below the title from another notebook"
    assert set(found) <= {save.slug()}
    assert len(found) == len(re.findall(r"OWNER/REPO", text)) or save.slug() != "OWNER/REPO"
    owner, repository = save.slug().split("/")
    pages = {f"https://{owner}.github.io/{repository}"}
    assert set(save.PAGES.findall(text)) in ([pages] if path.name in ("README.md", "CITATION.cff") else [pages, set()])
    assert text.count("github.io/REPO") == len(save.PAGES.findall(text)) or save.slug() != "OWNER/REPO"


@pytest.mark.slow
def test_the_address_is_written_everywhere_and_nothing_is_run(tmp_path, monkeypatch):
    files = {path.relative_to(save.ROOT): path.read_bytes() for path in (*COPIES, save.ROOT / "pyproject.toml")}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    monkeypatch.setattr(save, "ROOT", tmp_path)
    monkeypatch.setattr(save, "NOTEBOOKS", tmp_path / "notebooks")
    save.write_address("OWNER/REPO")  # whatever it is in this copy of the course
    files = {path: (tmp_path / path).read_bytes() for path in files}
    old = save.slug()
    addressed = [path for path, content in files.items() if b"OWNER" in content]
    assert save.write_address("ada/attention.course") == len(addressed) > 12
    assert not [path for path in files if b"OWNER" in (tmp_path / path).read_bytes()]
    assert save.slug() == "ada/attention.course"
    assert save.write_address("ada/attention.course") == 0
    save.write_address(old)
    assert {path: (tmp_path / path).read_bytes() for path in files} == files
    with pytest.raises(ValueError, match="'ada' is not the address of a repository; it must look like OWNER/REPO"):
        save.write_address("ada")


@pytest.mark.parametrize("url", ["https://github.com/only-owner", "http://github.com/a/b", "https://github.com/a/b/c"])
def test_an_invalid_address_is_refused(tmp_path, monkeypatch, url):
    (tmp_path / "pyproject.toml").write_text(f'[project.urls]\nRepository = "{url}"\n')
    monkeypatch.setattr(save, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=re.escape(url) + r".* must look like https://github.com/OWNER/REPO"):
        save.slug()


@pytest.mark.slow
def test_saving_twice_gives_the_same_file(tmp_path):
    notebook = nbformat.v4.new_notebook(metadata={"widgets": {"state": 1}, "vscode": {}})
    source = "from lesson_utils.lessons.start_here import lab\nlab.first_look()"
    notebook.cells = [nbformat.v4.new_code_cell(source, id="lab", metadata={"tags": ["kept"], "trusted": True})]
    path = tmp_path / "n.ipynb"
    nbformat.write(notebook, path)
    save.save(path, "a/b")
    first = path.read_bytes()
    save.save(path, "a/b")
    assert path.read_bytes() == first

    saved = nbformat.read(path, as_version=4)
    assert set(saved.metadata) == {"kernelspec", "language_info"}
    assert saved.cells[0].metadata == {"tags": ["kept"]}
    assert "image/png" in saved.cells[0].outputs[0].data


@pytest.mark.slow
def test_a_notebook_that_fails_is_not_written(tmp_path):
    path = tmp_path / "n.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0", id="a")]), path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        save.save(path, "a/b")
    assert path.read_bytes() == before


def test_the_film_is_short_and_shows_its_figure():
    """README's picture, as it is stored. It is not drawn again: another matplotlib sets letters otherwise."""
    from PIL import Image

    assert readme_film.FILM.stat().st_size <= 1_000_000
    readme = (save.ROOT / "README.md").read_text(encoding="utf-8")
    name = readme_film.FILM.relative_to(save.ROOT).as_posix()
    (alt,) = re.findall(rf"^!\[(.+)\]\({name}\)$", readme, re.M)
    assert all(
        word in alt for scene in readme_film.STORY for word in map(str, scene.values()) if word not in ("1.0", "10.0")
    )
    with Image.open(readme_film.FILM) as stored:
        size, times = stored.size, []
        for number in range(stored.n_frames):
            stored.seek(number)
            times.append(stored.info["duration"])
    assert times.count(readme_film.REST) == len(readme_film.STORY)
    assert 10_000 > sum(times) > 5_000
    image, time = next(readme_film.frames())
    assert (image.size, time) == (size, readme_film.REST)
