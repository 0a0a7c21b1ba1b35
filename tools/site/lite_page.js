// What JupyterLite's page does for a learner beyond JupyterLite: lite.py puts this, lite_page.html and zip.js into it.
//
// JupyterLite hands out its application object (exposeAppInBrowser). This asks it for what it shows, and changes one
// thing: a cell that is run before its kernel is there waits.
(() => {
  const FIRST = "00_start_here.ipynb";
  const SLOW = 90; // seconds after which one is told what to do
  const course = document.getElementById("course");
  const status = course.querySelector("[role=status]");
  const details = course.querySelector("details");
  const button = course.querySelector("button");
  let app;

  // --- Python starts while JupyterLab does: the first kernel's worker is there when it is asked for --------------------
  const { Worker } = window;
  const early = new Worker("../extensions/@jupyterlite/pyodide-kernel-extension/static/early.js");
  window.Worker = function (address, options) {
    if (!/pyodide-kernel-extension/.test(address)) return new Worker(address, options);
    window.Worker = Worker;
    early.postMessage(String(address));
    return early;
  };

  // Where a browser allows a page no storage, nothing is remembered.
  const KEY = `${location.pathname} notebook`;
  const remembered = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  const remember = (key, value) => {
    try {
      localStorage.setItem(key, value);
    } catch {}
  };

  // --- The address names the notebook that is in sight: a reload and a bookmark open it again --------------------------
  // JupyterLite opens what `?path=` names, and takes it out of the address.
  const name = (path) => {
    const address = new URL(location.href);
    if (path) address.searchParams.set("path", path);
    else address.searchParams.delete("path");
    address.searchParams.delete("cell");
    if (address.href !== location.href) history.replaceState(history.state, "", address);
  };
  const asked = new URLSearchParams(location.search); // the book's links also name a cell
  const documents = () => [app.shell.currentWidget, ...app.shell.widgets("main")].filter((widget) => widget?.context?.path);
  let opened = false; // until then, what is to be opened stands in the address
  const follow = () => {
    const path = app && documents()[0]?.context.path;
    opened ||= Boolean(path);
    if (!opened) return;
    name(path);
    remember(KEY, path ?? "");
  };
  if (!new URLSearchParams(location.search).has("path")) name(remembered(KEY) || FIRST);
  const push = history.pushState;
  history.pushState = function (...words) {
    push.apply(this, words);
    follow();
  };

  // --- A notebook opens again at the cell where one was ---------------------------------------------------------------
  const CELLS = `${location.pathname} cells`; // of each notebook, by its path
  const cells = () => JSON.parse(remembered(CELLS) || "{}");
  // The texts and pictures above it come later, and push it away. It stays in sight until a hand is there.
  const stay = async (content, until) => {
    const place = content.activeCellIndex;
    let ours = true;
    const kinds = ["wheel", "pointerdown", "keydown", "touchstart"];
    for (const kind of kinds) addEventListener(kind, () => (ours = false), { capture: true, once: true, passive: true });
    const there = () => {
      if (ours && !content.isDisposed && content.activeCellIndex === place) return content.scrollToItem(place, "center");
    };
    await until;
    await there();
    for (const later of [300, 800, 1500, 3000, 6000, 10_000]) setTimeout(there, later);
  };
  // Whoever comes back is told to run all cells above the one to go on with.
  const runAbove = (_, { id, result }) => {
    const content = app.shell.currentWidget?.content;
    if (id === "notebook:run-all-above" && content?.widgets) stay(content, result);
  };
  const goBack = async (panel) => {
    await Promise.all([panel.revealed, panel.context.ready]);
    const { content, context } = panel;
    const linked = context.path === asked.get("path") && asked.get("cell");
    const last = linked || cells()[context.path];
    const place = content.widgets.findIndex((cell) => cell.model.id === last);
    if (place > 0 && content.activeCellIndex === 0) {
      content.activeCellIndex = place;
      await stay(content);
      // The book's link says that it runs its cell, after all above it. What was run here before is the reader's own.
      if (linked && content.activeCell.model.executionCount) say(RAN);
      else if (linked) {
        content.activeCellIndex = 0;
        content.extendContiguousSelectionTo(place);
        const run = app.commands.execute("notebook:run-cell");
        run.then((fine) => fine || say("A cell ended in an error. The cells after it did not run."));
        stay(content, run);
      }
    }
    const note = (_, cell) => cell?.model && remember(CELLS, JSON.stringify({ ...cells(), [context.path]: cell.model.id }));
    content.activeCellChanged.connect(note);
  };

  // --- What is loading, and when it is ready --------------------------------------------------------------------------
  const opening = Date.now();
  let since = opening;
  let waiting = 0; // cells that were run before Python was there
  let news = ""; // for some seconds
  const unsaved = new Set(); // what could not be saved: the storage is full, most likely
  const state = () => {
    const panel = app?.shell.currentWidget;
    const context = panel?.sessionContext;
    const kernel = context?.session?.kernel?.status;
    const running = panel?.content?.widgets?.filter((cell) => cell.model.executionState === "running").length;
    if (kernel === "idle" || kernel === "busy") return running > 1 ? `Running: ${running} cells to go` : "Python is ready.";
    if (kernel === "dead") return "Python has stopped. Choose Kernel → Restart Kernel.";
    const slow = Date.now() - since > SLOW * 1000;
    if (!context) return opened ? "" : slow ? "Loading is slow. Check your connection and reload." : "Loading the notebook …";
    if (slow) return "Python is still not there. Check your connection and reload.";
    return waiting || running ? "Python is starting. Your cell waits." : "Python is starting …";
  };
  const RAN = "You ran this cell here before. Choose Run → Run All Above Selected Cell, then run it.";
  const FULL = "Your work could not be saved. Download my notebooks, then make room in this browser.";
  const tell = () => {
    const text = news || (unsaved.size ? FULL : state());
    if (status.textContent === text) return;
    status.textContent = status.title = text;
  };
  setInterval(tell, 1000);
  const say = (text) => {
    news = text;
    tell();
    setTimeout(() => ((news = ""), tell()), 10_000);
  };

  // --- A cell that is run before its kernel is there waits for it -----------------------------------------------------
  // JupyterLab would empty its output, and forget it. But a session that says it has no kernel is first asked to start
  // one, and this is awaited. (The session itself starts its kernel by the same function, without that question.)
  const patience = (panel) => {
    const context = panel.sessionContext;
    if (context.isReady) return;
    let asked = false;
    const hasNoKernel = () => {
      asked = !context.session?.kernel;
      queueMicrotask(() => (asked = false));
      return asked;
    };
    const wait = async () => {
      const cell = panel.content.activeCell;
      const marked = cell?.model.type === "code";
      if (marked) cell.setPrompt("*");
      waiting += 1;
      tell();
      await context.ready;
      waiting -= 1;
      // Run All Above has marked a cell that it does not run.
      setTimeout(() => {
        if (marked && cell.model?.executionState === "idle") cell.setPrompt(`${cell.model.executionCount ?? ""}`);
      });
      return false; // no kernel is to be chosen
    };
    const start = context.startKernel;
    Object.defineProperty(context, "hasNoKernel", { get: hasNoKernel, configurable: true });
    context.startKernel = () => (asked ? wait() : start.call(context));
    context.ready.then(() => {
      delete context.hasNoKernel;
      delete context.startKernel;
    });
  };

  // --- Saving, and one file with all that is kept here ----------------------------------------------------------------
  const save = () =>
    Promise.all(documents().map(({ context }) => context.isReady && context.model.dirty && context.save()));
  const bytes = ({ content, format }) => {
    if (format === "base64") return Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    return new TextEncoder().encode(format === "json" ? JSON.stringify(content, null, 1) + "\n" : content);
  };
  // What is not saved is taken from the page, because where the storage is full it stands nowhere else.
  const shown = ({ context }) => {
    const notebook = context.contentsModel?.type === "notebook";
    const content = notebook ? context.model.toJSON() : context.model.toString();
    return [context.path, { content, format: notebook ? "json" : "text", last_modified: Date.now() }];
  };
  const download = async () => {
    const kept = new Map(documents().filter(({ context }) => context.isReady && context.model.dirty).map(shown));
    if (!unsaved.size) save().catch(() => {}); // not awaited: JupyterLab's answer may be a dialog
    const storage = await app.serviceManager.contents._defaultDrive.storage;
    const files = [];
    await storage.iterate((file, path) => {
      if (file.type !== "directory" && !kept.has(path)) kept.set(path, file);
    });
    for (const [path, file] of kept) files.push([`my_notebooks/${path}`, bytes(file), new Date(file.last_modified)]);
    if (!files.length) return "There is nothing to download yet. Open a notebook first.";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(zip(files));
    link.download = "my_notebooks.zip";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return `Downloaded my_notebooks.zip (${files.length} ${files.length === 1 ? "file" : "files"}).`;
  };
  button.addEventListener("click", async () => {
    say(await download().catch((error) => `The download failed: ${error.message}`));
  });
  document.addEventListener("visibilitychange", () => document.hidden && app && save());

  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    details.open = false;
    details.firstElementChild.focus();
  });
  document.addEventListener("pointerdown", (event) => details.contains(event.target) || (details.open = false));

  // --- On a phone or a tablet the list of files leaves a notebook no room; JupyterLab shows it with the first one --------
  const alone = () => innerWidth < 900 && app.shell.collapseLeft();
  const listed = (commands, { id, result }) => {
    if (id === "filebrowser:activate") result.then(alone);
    if (id === "docmanager:show-in-file-browser") result.finally(() => (alone(), commands.commandExecuted.disconnect(listed)));
  };

  // --- JupyterLite's page is there ------------------------------------------------------------------------------------
  const seen = new WeakSet();
  const look = () => {
    const panel = app.shell.currentWidget;
    if (panel?.context && !seen.has(panel)) {
      seen.add(panel);
      since = Date.now();
      panel.context.pathChanged.connect(follow);
      panel.context.saveState.connect((context, saving) => {
        if (saving === "failed") unsaved.add(context);
        if (saving.startsWith("completed")) unsaved.delete(context);
        tell();
      });
      panel.disposed.connect(() => unsaved.delete(panel.context));
      panel.sessionContext?.statusChanged.connect(tell);
      if (panel.content?.widgets) {
        patience(panel);
        goBack(panel);
      }
    }
    follow();
    tell();
  };
  Object.defineProperty(window, "jupyterapp", {
    configurable: true,
    get: () => app,
    set(value) {
      app = value;
      app.shell.currentChanged.connect(look);
      app.commands.commandExecuted.connect(runAbove);
      app.commands.commandExecuted.connect(listed);
      app.restored.then(() => {
        document.body.classList.remove("jp-mod-dark", "jp-mod-light"); // JupyterLite's, until its theme is there
        course.classList.remove("loading");
        alone();
        look();
      });
    },
  });
})();
