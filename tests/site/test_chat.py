"""The chat's page in Chromium, with a small stand-in for the model; and once with the published one.

python course.py test tests/site/test_chat.py
"""

import contextlib
import json
import re
from collections import Counter
from pathlib import Path

import axe
import numpy as np
import pytest
import stand_in_model
import tiny_models

from lesson_utils.maths import pretrained
from tools.browser import driver, firefox
from tools.site.chat.conversation import Conversation
from tools.site.chat.own_attention import LINES

pytestmark = pytest.mark.long_form
REFERENCE = json.loads((Path(__file__).parents[1] / "maths" / "smollm2_reference.json").read_text(encoding="utf-8"))
QUESTION = "What is the capital of France?"
SLOW = "    import time; time.sleep(0.03)\n"
OFF = [[0, 1], [2, 3]]  # what the stand-in's experiment switches off


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return stand_in_model.write(tmp_path_factory.mktemp("model") / "model.gguf")


@pytest.fixture(scope="module")
def address(tmp_path_factory, chromium, wheels, model):
    from tools.site.chat import make

    site = tmp_path_factory.mktemp("site")
    make.build(site / "chat", model, stand_in_model.PART)
    manifest = json.loads((site / "chat" / "model.json").read_text())
    manifest["experiments"] = [{"name": "Two heads", "heads": OFF}]
    (site / "chat" / "model.json").write_text(json.dumps(manifest))
    with driver.served(site) as address:
        yield f"{address}chat/"


class Visit:
    """A page in a browser of its own, which keeps what it stores; `asked` counts the parts of the model."""

    def __init__(self, chromium, address):
        self.address, self.asked, self.elsewhere, self.errors = address, Counter(), [], []
        self.context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
        self.context.on("request", self._note)
        self.page = self.new_page()

    def _note(self, request):
        own = (self.address, "blob:", "data:", self.address.removesuffix("chat/") + "_static/")
        if not request.url.startswith(own):
            self.elsewhere.append(request.url)
        if "/model/" in request.url:
            self.asked[request.url.rpartition("/")[2]] += 1

    def new_page(self):
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def start(self, wait=True):
        self.page.goto(self.address)
        self.page.click("#start")
        if wait:
            self.works()

    def works(self):
        self.page.locator("#works").wait_for(timeout=90_000)

    def says(self, text, where="#state"):
        self.page.wait_for_function(
            "([where, text]) => document.querySelector(where).textContent.includes(text)",
            arg=[where, text],
            timeout=90_000,
        )

    def ask(self, text=QUESTION, wait=True):
        """Send a message, which is answered by the likeliest tokens; return the tokens of the answer."""
        self.page.fill("#text", text)
        self.page.press("#text", "Enter")
        if wait:
            self.says("Send", "#send")
            return self.tokens()

    def tokens(self):
        return self.page.evaluate("[...document.querySelectorAll('#said div:last-child span')].map(n => n.textContent)")

    def python(self, code):
        """Run code in the page's own Python; `chat` is its conversation."""
        (worker,) = self.page.workers
        return worker.evaluate("code => pyodide.runPython(code)", code)

    def close(self):
        self.context.close()
        assert self.elsewhere == []
        assert self.errors == []


@pytest.fixture
def visit(chromium, address):
    visit = Visit(chromium, address)
    yield visit
    visit.close()


@pytest.fixture(scope="module")
def ready(chromium, address):
    """A page with the model: for tests that leave it as they found it."""
    visit = Visit(chromium, address)
    visit.start()
    yield visit
    visit.close()


def natively(model, text=QUESTION):
    """What the same Python writes without a browser."""
    pieces = []
    talk = Conversation(str(model))
    talk.warm_up()
    answer = talk.answer(text, 0, lambda piece, p: pieces.append(piece), lambda *_: None)
    with contextlib.suppress(StopIteration):  # by hand: playwright has a loop of its own
        while True:
            answer.send(None)
    return pieces


# Run in the page's Python: the logits of ids, and what the model writes after them.
LOGITS = "import numpy as np; ids = np.array({ids}); json.dumps(chat.model.forward(ids[None])[0][0, -1].tolist())"
WRITES = "chat.model.generate(np.array([{ids}]), {length}, np.random.default_rng(0), temperature=0.0)[0].tolist()"


def test_text_and_logits_are_those_of_the_library(ready, model):
    assert ready.ask() == natively(model)
    real = pretrained.load(model, progress=False)
    ids = real.tokenizer.encode("Ilse Brandt came up the path with a lamp.").tolist()
    found = json.loads(ready.python("import json\n" + LOGITS.format(ids=ids)))
    np.testing.assert_allclose(found, real.model.forward(np.array([ids]))[0][0, -1], atol=1e-4)
    ready.page.click("#anew")


def test_products_with_packed_weights_are_those_of_numpy(ready):
    worst = ready.python(
        """
        import numpy as np
        from lesson_utils.maths.layers import Packed

        rng, worst = np.random.default_rng(0), 0.0
        for q4 in (True, False):
            for m, blocks, columns in ((1, 1, 16), (2, 3, 32), (3, 2, 48), (7, 5, 16), (0, 1, 16), (2, 1, 17)):
                low, high, dtype = (0, 256, np.uint8) if q4 else (-128, 128, np.int8)
                numbers = rng.integers(low, high, (blocks, 16 if q4 else 32, columns), dtype)
                scale, least = rng.normal(size=(2, blocks, columns)).astype(np.float32)
                W = Packed(numbers, scale, least if q4 else None, transposed=True)
                x = rng.normal(size=(m, 32 * blocks)).astype(np.float32)
                off = np.abs(x @ W - x @ np.asarray(W)).max(initial=0)
                worst = max(worst, float(off / (np.abs(x) @ np.abs(np.asarray(W))).max(initial=1)))
        worst
        """
    )
    assert 0 < worst < 1e-6


def test_stop_comes_within_a_token(ready):
    page = ready.page
    own_lines(page, LINES.replace("    scores =", SLOW + "    scores =", 1))
    ready.says("on your lines", "#verdict")
    ready.ask(wait=False)
    page.wait_for_function("document.querySelectorAll('#said div:last-child span').length >= 3", timeout=60_000)
    before = page.evaluate("document.getElementById('send').click(), document.querySelectorAll('#said span').length")
    ready.says("You stopped the answer.", "#news")
    assert len(ready.tokens()) <= before + 1
    assert page.locator("#said").inner_text().count(QUESTION) == 1
    # While it reads, too; then the message is back in its box.
    ready.ask("the " * 400, wait=False)  # read in so many pieces that a busy machine presses in time
    ready.says("The model has read", "#news")
    page.press("#text", "Escape")
    ready.says("before its first token", "#news")
    assert page.input_value("#text").startswith("the the")
    page.click("#original")
    ready.says("original lines again", "#verdict")


def own_lines(page, lines):
    page.fill("#lines", lines)
    page.click("#own [type=submit]")


def test_the_chat_runs_on_a_learners_lines_and_an_error_is_a_sentence(ready):
    page, plain = ready.page, ready.ask()
    own_lines(page, LINES.replace("math.sqrt(Q.shape[-1])", "0.05"))
    ready.says("The chat now runs on your lines.", "#verdict")
    own_lines(page, LINES.replace("np.exp", "np.exb"))
    ready.says("Line 7 stops with AttributeError: module 'numpy' has no attribute 'exb'", "#verdict")
    ready.says("still runs on the lines before", "#verdict")
    assert ready.ask() != plain
    page.click("#original")
    ready.says("original lines again", "#verdict")
    assert ready.ask() == plain


@pytest.mark.own_job
def test_a_function_that_never_returns_is_ended(visit):
    visit.start()
    plain = visit.ask("the")
    own_lines(visit.page, "def attention(Q, K, V, mask=None):\n    while True: pass")
    visit.says("Your lines are being tried, for up to 10 seconds …", "#verdict")
    visit.says("did not come back", "#verdict")
    visit.says("The model is ready.")
    assert visit.ask("the") == plain
    visit.says("did not come back", "#verdict")  # still
    assert set(visit.asked.values()) == {1}, "the model was kept"


@pytest.mark.own_job
def test_what_is_shown_belongs_to_what_was_sent(visit):
    visit.start()
    page = visit.page
    page.wait_for_function("seen?.tokens.length")
    page.click("#tries button >> nth=1")
    text = page.input_value("#text")
    before = page.locator("#reads").inner_text()
    send = "$('send').click(); await settled; await 0; return [$('sentence').value, $('expects').textContent]"
    shown = page.evaluate(f"async () => {{ {send} }}")
    assert shown == [text, "The maps follow when the answer is there."]
    page.wait_for_function("seen && !document.getElementById('maps').hasAttribute('aria-busy')", timeout=60_000)
    assert page.locator("#reads").inner_text() != before


def test_heads_and_windows_are_switched_off_and_maps_show_the_sentence(ready):
    page = ready.page
    page.fill("#sentence", "the heat, the")
    page.click("#try [type=submit]")
    page.wait_for_function("document.querySelectorAll('#query option').length === 8")
    expects = page.locator("#expects").inner_text()
    assert len(re.findall(r"“[^”]*” .*?%", expects)) == 5
    assert "Without your changes" not in expects
    page.select_option("#experiment", label="Two heads")
    ready.says("Off are the heads 0.1, 2.3", "#off")
    ready.says("Without your changes it expects", "#expects")
    # One head by its own switch, from the keyboard.
    page.locator("#layer").press("Home")
    page.locator("#head").press("End")
    page.locator("#on").press("Space")
    ready.says("0.1, 0.3, 2.3", "#off")
    assert page.locator("#experiment option:checked").inner_text() == "a choice of your own"
    page.select_option("#experiment", label="none")
    ready.says("All heads are on.", "#off")
    page.fill("#sentence", "abcdefghijklmnopqrstuvwx")
    page.select_option("#window", "16,1")  # only the last 16 tokens, and the first one
    page.wait_for_function("seen?.T === 24 && seen.maps.slice(23 * 24, 24 * 24).filter(Boolean).length === 17")
    page.select_option("#window", "")
    page.wait_for_function("seen?.maps.slice(23 * 24, 24 * 24).filter(Boolean).length > 17")
    said = page.locator("#one").get_attribute("aria-label")
    assert said.startswith("Layer 0, head 3. The largest weight of each token: “a” on “a” 1.00, ")
    box = page.locator("#all").bounding_box()
    page.mouse.click(box["x"] + 2.5 / 3 * box["width"], box["y"] + 1.5 / 4 * box["height"])
    assert page.locator("#reads").inner_text().startswith("Layer 2, head 1: “x” puts a weight of ")


def test_a_first_visit_by_keyboard_alone_and_a_second_one_that_fetches_nothing(visit):
    page = visit.page
    page.goto(visit.address)
    for _ in range(2):  # the link home, the button
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "start"
    page.keyboard.press("Enter")
    visit.works()
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.press("Control+A")
    page.keyboard.type("the")
    page.keyboard.press("Enter")
    visit.says("Stop", "#send")
    page.keyboard.press("Escape")
    visit.says("Send", "#send")
    reached = []
    while "original" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        assert len(reached) < 40
    wanted = "send anew temperature experiment window sentence layer head on query lines".split()
    assert [name for name in reached if name in wanted] == wanted

    assert len(visit.asked) > 2
    assert set(visit.asked.values()) == {1}
    visit.asked.clear()
    page.goto(visit.address)
    visit.says("already in this browser", "#start")
    page.click("#start")
    visit.works()
    assert visit.ask("the")
    assert visit.asked == {}


def test_a_model_of_ones_own_is_opened_and_stays_in_the_tab(visit, model, tmp_path):
    """A GPT-2 by the button, a Qwen2 by dropping it; what does not fit is told; and back to the site's model."""
    page, own = visit.page, tmp_path / "mine.gguf"
    own.write_bytes(tiny_models.gguf("gpt2", **{"tokenizer.chat_template": ""}))
    page.goto(visit.address)
    page.evaluate("openFile(Object.defineProperty(new File(['GGUF'], 'large.gguf'), 'size', { value: 1e9 }))")
    visit.says("large.gguf has 1000 MB, and a tab has room for 700 MB.")
    (tmp_path / "a.gguf").write_text("Once upon a time")
    page.set_input_files("#file", tmp_path / "a.gguf")
    visit.says("a.gguf is no GGUF file: it does not begin with these four letters.")
    page.set_input_files("#file", own)
    visit.says("mine.gguf is ready: 0.0 million parameters. It has no chat template that this page knows")
    assert visit.asked == {}, "nothing was fetched of the site's model"
    assert visit.ask("the hat") == natively(own, "the hat")
    page.wait_for_function("seen?.tokens.join('') === 'the hat'")
    assert page.locator("#experiment option").count() == 2
    plain = page.locator("#reads").inner_text()
    page.locator("#layer").press("Home")
    page.locator("#on").press("Space")
    visit.says("Off are the heads 0.3", "#off")
    visit.says("Without your changes it expects", "#expects")
    own_lines(page, LINES.replace("math.sqrt(Q.shape[-1])", "0.05"))
    visit.says("The chat now runs on your lines.", "#verdict")
    page.wait_for_function("seen && !document.getElementById('maps').hasAttribute('aria-busy')")
    assert page.locator("#reads").inner_text() != plain

    dropped = list(tiny_models.gguf("qwen2"))
    page.evaluate(
        """bytes => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([new Uint8Array(bytes)], "other.gguf"));
            document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        dropped,
    )
    visit.says("other.gguf is ready")
    visit.says("All heads are on.", "#off")
    (tmp_path / "other.gguf").write_bytes(bytes(dropped))
    assert visit.ask("the") == natively(tmp_path / "other.gguf", "the")
    (tmp_path / "b.gguf").write_bytes(bytes(dropped).replace(b"qwen2", b"gemma"))
    page.set_input_files("#file", tmp_path / "b.gguf")
    visit.says("b.gguf holds a model of the kind 'gemma'; those that have a place here are")
    page.click("#start")
    visit.says("The model is ready.")
    assert visit.ask("the") == natively(model, "the")


@pytest.mark.parametrize(("mode", "width"), [("light", 1280), ("dark", 390)])
def test_nobody_is_kept_out(ready, mode, width):
    page = ready.page
    page.emulate_media(color_scheme=mode)
    page.set_viewport_size({"width": width, "height": 900})
    ready.ask("the")
    page.locator("details").evaluate_all("nodes => nodes.forEach(node => node.open = true)")
    assert axe.violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


# --- Bad luck ---------------------------------------------------------------------------------------------------------


@pytest.mark.own_job
def test_a_window_without_storage_says_so_and_works(visit):
    """As some private windows, and every page by plain http, which has no checksums and no locks, either."""
    visit.context.add_init_script(
        "delete self.caches; delete Navigator.prototype.locks; delete Crypto.prototype.subtle; if (self.caches) throw 1"
    )
    visit.context.route("**/model/03-*", lambda route: route.fulfill(body=route.fetch().body()[::-1]))
    visit.start(wait=False)
    visit.says("The model's file is damaged. Press the button again to fetch it anew.")
    visit.context.unroute("**/model/03-*")
    visit.page.click("#start")
    visit.says("Your browser could not keep it, so the next visit will fetch it again.")
    assert visit.ask("the")


@pytest.mark.own_job
def test_a_lost_connection_goes_on_where_it_was(visit):
    """A part is lost in each way: silence, a reset, its end, a byte, a byte more. Then the reader is asked to go on."""
    page, served = visit.page, []

    def lose(route):
        served.append(route)
        trial = len(served)
        if trial == 1:
            return  # and no answer
        if trial == 2:
            return route.abort("connectionreset")
        body = route.fetch().body()
        bad = {3: body[:-7], 4: bytes([body[0] ^ 1]) + body[1:], 5: body + b"x"}
        route.fulfill(body=bad.get(trial, body))

    visit.context.route("**/model/01-*", lose)
    page.clock.install()
    visit.start(wait=False)

    def until(trials):
        while len(served) < trials:
            page.clock.run_for(1_000)
            page.wait_for_timeout(100)

    until(2)
    visit.says("The connection was lost after 0 MB. Trying again …")
    until(4)
    visit.says("What came was damaged after 0 MB. Trying again …")
    until(5)
    visit.says("What came was damaged after 0 MB. Press the button again to go on from there.")
    page.click("#start")
    visit.works()
    assert {visit.asked[name] for name in visit.asked if not name.startswith("01-")} == {1}


@pytest.mark.own_job
def test_a_tab_without_memory_and_a_python_that_does_not_come_are_told(visit):
    worker = visit.page.request.get(f"{visit.address}worker.js").text()
    full = worker.replace("pyodide.FS.writeFile(", "throw new RangeError('Array buffer allocation failed'); (")
    visit.context.route("**/worker.js", lambda route: route.fulfill(body=full, content_type="text/javascript"))
    visit.start(wait=False)
    visit.says("This tab has too little memory for the model.")
    visit.context.unroute("**/worker.js")
    visit.context.route("**/packages.tar.gz", lambda route: route.abort())
    visit.start(wait=False)
    visit.says("Python could not be started. Check your connection, and press the button again.")
    visit.context.unroute("**/packages.tar.gz")
    visit.page.click("#start")
    visit.works()


@pytest.mark.own_job
def test_two_tabs_fetch_the_model_once(visit):
    tabs = (visit.page, visit.new_page())
    for page in tabs:
        page.goto(visit.address)
    for page in tabs:
        page.click("#start")
    for page in tabs:
        page.locator("#works").wait_for(timeout=90_000)
    assert set(visit.asked.values()) == {1}


# --- Another browser, and the published model -------------------------------------------------------------------------


@pytest.mark.own_job
@pytest.mark.parametrize("private", [False, True])
def test_firefox_runs_it_too(address, model, private):
    """The same text as natively, also at a second visit, which fetches nothing."""
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    with firefox.started(private) as browser:
        for visit in ("first", "second"):
            page = browser.page(address)
            already = "second => document.getElementById('start').textContent.includes('already') === second"
            page.wait(already, visit == "second")
            page.click("#start")
            page.wait("() => !document.getElementById('works').hidden", seconds=90)
            page.wait("() => seen?.tokens.length", seconds=60)
            page.click("#send")
            page.wait("() => document.getElementById('send').textContent === 'Send'", seconds=60)
            tokens = page.ask("() => [...document.querySelectorAll('#said span')].map(node => node.textContent)")
            assert tokens == natively(model)
            fetched = [request for request in browser.requests if "/model/" in request]
            assert len(fetched) == len(set(fetched)) > 2
        refused = page.ask("() => navigator.storage.getDirectory().then(() => false, () => true)")
        assert refused == private, "this Firefox keeps nothing else of a private window"
        assert browser.complaints == []
        assert [request for request in browser.requests if not request.startswith((address, "data:", "blob:"))] == []


@pytest.mark.own_job
def test_firefox_opens_a_model_of_ones_own(address, tmp_path):
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    content = tiny_models.gguf("gpt2", **{"tokenizer.chat_template": ""})
    (tmp_path / "mine.gguf").write_bytes(content)
    with firefox.started(False) as browser:
        page = browser.page(address)
        page.ask("bytes => openFile(new File([new Uint8Array(bytes)], 'mine.gguf'))", list(content))
        page.wait("() => document.getElementById('state').textContent.includes('mine.gguf is ready')", seconds=90)
        page.ask(
            "() => { document.getElementById('text').value = 'the hat'; document.getElementById('send').click(); }"
        )
        page.wait("() => document.querySelectorAll('#said span').length > 3", seconds=60)
        page.wait("() => document.getElementById('send').textContent === 'Send'", seconds=60)
        tokens = page.ask("() => [...document.querySelectorAll('#said span')].map(node => node.textContent)")
        assert tokens == natively(tmp_path / "mine.gguf", "the hat")
        assert browser.complaints == []


@pytest.mark.own_job
def test_the_published_model_writes_as_natively(tmp_path, chromium, wheels):
    from tools.site.chat import make

    make.build(tmp_path / "chat")
    with driver.served(tmp_path) as address:
        visit = Visit(chromium, f"{address}chat/")
        visit.start()
        for reference in REFERENCE.values():
            logits = json.loads(visit.python("import json\n" + LOGITS.format(ids=reference["ids"])))
            np.testing.assert_allclose(np.array(logits)[reference["top"]], reference["logits"], atol=1e-4)
            ids = json.loads(visit.python(f"json.dumps({WRITES.format(ids=reference['ids'], length=30)})"))
            assert ids == reference["ids"] + reference["greedy"]
        assert "".join(visit.ask()) == "The capital of France is Paris."
        visit.page.select_option("#experiment", index=1)
        visit.says("Without your changes it expects “Brand”", "#expects")
        assert "expects “Brand”" not in visit.page.locator("#expects p").first.inner_text()
        visit.close()
