"""How Sphinx makes the book, in a folder that build.py fills. With the tag `lite`, JupyterLite will be beside it."""

import html
import tomllib
from pathlib import Path, PurePosixPath

from docutils import nodes

PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
LITE = "../lite/lab/index.html"  # from a notebook's page

OWNER, REPOSITORY = PROJECT["urls"]["Repository"].split("/")[-2:]

project = html_title = "Attention, measured"
html_baseurl = f"https://{OWNER}.github.io/{REPOSITORY}/"  # each page names it as the one to link to
templates_path = ["_templates"]
language = "en_GB"
exclude_patterns = ["README.md"]  # the front page takes its sections from it
extensions = ["myst_nb", "sphinx.ext.githubpages"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # a link leads to a heading as on GitHub

nb_execution_mode = "off"
nb_code_prompt_show = "Show what happened"  # below a prediction: see close_answers in tools/site/build.py
nb_code_prompt_hide = "Hide what happened"
nb_ipywidgets_js = {}  # no kernel, so no widgets: their pictures stand in for them

mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"chtml": {"matchFontHeight": False, "scale": 1.1}}  # else formulas tower over the text

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = [(file, {"defer": "defer"}) for file in ("frames.js", "run.js", "enlarge.js", "panels.js")]
html_show_copyright = False
html_use_index = False
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_theme_options = {
    "repository_url": PROJECT["urls"]["Repository"],
    "repository_branch": "main",
    "use_repository_button": True,
    "navbar_persistent": [],
    "footer_content_items": ["extra-footer.html"],
    "launch_buttons": {
        "notebook_interface": "jupyterlab",
        "binderhub_url": "https://mybinder.org",
        "colab_url": "https://colab.research.google.com",
    },
    "extra_footer": "Code: MIT. Text and figures: "
    '<a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>.',
}


def address_in_lite(notebook):
    """There, notebooks stand at the root: `notebooks/02_scaled_attention` is 02_scaled_attention.ipynb."""
    return f"{LITE}?path={PurePosixPath(notebook).name}.ipynb"


def add_link(app, page, source):
    """In a notebook's first lines, before the links to Colab and Binder. The source is JSON: no double quotes."""
    lite = address_in_lite(page)
    link = f"<a href='{lite}'>Open in JupyterLite</a>"
    run = f"<b>You are reading. <a href='{lite}'>Run this notebook in your browser</a></b>, with nothing to install. "
    run += "Its exercises also run right here."
    source[0] = source[0].replace("[Open in Colab]", f"{run}\\n\\n{link} · [Open in Colab]", 1)


def add_button(app, page, template, context, doctree):
    """Add a link to JupyterLite; the theme's own would look for the notebook in its folder of the repository."""
    for group in context["header_buttons"]:
        if group.get("label") == "launch-buttons":
            icon = "_static/images/logo_jupyterlite.svg"
            button = {"type": "link", "text": "JupyterLite", "icon": icon, "url": address_in_lite(page)}
            group["buttons"].insert(0, button)


def describe(app, page, template, context, doctree):
    """For search engines, and for sites that show a link: a page's title, its first sentences, and a picture."""
    if doctree is None:  # the search
        return
    texts = (" ".join(paragraph.astext().split()) for paragraph in doctree.findall(nodes.paragraph))
    text = next((text for text in texts if len(text) > 15), project)
    title = context["title"] if page != context["root_doc"] else doctree.next_node(nodes.title).astext()
    own = f"_static/previews/{PurePosixPath(page).name}.png"  # which a notebook has
    preview = own if Path(app.srcdir, own).exists() else "_static/previews/index.png"
    facts = {
        "description": text if len(text) < 200 else text[:200].rpartition(". ")[0] + ".",  # whole sentences
        "og:title": title,
        "og:type": "website",
        "og:url": context["pageurl"],
        "og:image": f"{html_baseurl}{preview}",
        "og:image:alt": "A title, and one of the figures.",
        "twitter:card": "summary_large_image",
    }
    facts["og:description"] = facts["description"]
    for name, value in facts.items():
        kind = "property" if name.startswith("og:") else "name"
        context["metatags"] += f'\n<meta {kind}="{name}" content="{html.escape(value)}">'


def mend_names(app, page, template, context, doctree):
    """Let who listens hear what others read: no head where a cell is empty, and a fold by the words on it."""
    for old, new in (
        ('<th class="head"><p></p></th>', '<td class="head"></td>'),
        ('<summary aria-label="Toggle hidden content">', "<summary>"),
    ):
        context["body"] = context.get("body", "").replace(old, new)


def setup(app):
    app.connect("html-page-context", describe)
    app.connect("html-page-context", mend_names)
    if app.tags.has("lite"):
        app.connect("source-read", add_link)
        app.connect("html-page-context", add_button, priority=502)  # after the theme's buttons
