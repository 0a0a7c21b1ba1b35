// What a walk asks of JupyterLab's page, and does there: `chaos.…`. It is there before the page's own scripts.
window.chaos ??= (() => {
  // Errors of our page.js: it stands in the page itself, while JupyterLab's scripts are files of their own.
  const errors = [];
  addEventListener("error", ({ error }) => {
    if (error && !/\/(static|extensions)\//.test(error.stack)) errors.push(`${error}\n${error.stack}`);
  });

  const later = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const inTime = (promise, seconds, what) =>
    Promise.race([promise, later(seconds * 1000).then(() => Promise.reject(new Error(`${what}: no answer in ${seconds} s`)))]);
  const panel = (path) => [...jupyterapp.shell.widgets("main")].find((widget) => widget.context?.path === path);
  const kernel = (path) => panel(path)?.sessionContext.session?.kernel;
  const widgets = (path) => panel(path).content.widgets;
  const cell = (path, id) => widgets(path).find((widget) => widget.model.id === id);
  const text = (stream) => [stream].flat().join("");
  const hash = (string) => [...string].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0, 0);

  const open = (path) => void jupyterapp.commands.execute("docmanager:open", { path });
  const isOpen = (path) => Boolean(window.jupyterapp && panel(path)?.context.isReady && kernel(path) && widgets(path).length);
  const state = (path) => ({
    kernel: kernel(path)?.id,
    status: kernel(path)?.connectionStatus === "connected" ? kernel(path).status : "not connected",
    running: widgets(path).filter((widget) => widget.prompt === "*").map((widget) => widget.model.id),
    dialogs: [...document.querySelectorAll(".jp-Dialog")].map((dialog) => dialog.innerText),
  });
  const accept = () =>
    document.querySelectorAll(".jp-Dialog").forEach((dialog) => [...dialog.querySelectorAll("button.jp-Dialog-button")].pop().click());

  const cells = (path) =>
    widgets(path).map(({ model }) => {
      const outputs = model.type === "code" ? model.outputs.toJSON() : [];
      const errors = outputs.filter((output) => output.output_type === "error");
      return {
        id: model.id,
        type: model.type,
        source: model.sharedModel.getSource(),
        ran: Boolean(model.executionCount) && !errors.length,
        errors: errors.map((error) => ({ name: error.ename, text: text(error.traceback) })),
        stderr: outputs.filter((output) => output.name === "stderr").map((output) => text(output.text)).join(""),
      };
    });
  const select = (path, id) => {
    jupyterapp.shell.activateById(panel(path).id);
    const { content } = panel(path);
    content.activeCellIndex = content.widgets.indexOf(cell(path, id));
  };
  const run = (path, id, how = "run-cell") => {
    select(path, id);
    jupyterapp.commands.execute(`notebook:${how}`).catch(() => {}); // it is refused where the kernel has died
  };
  const write = (path, id, source) => cell(path, id).model.sharedModel.setSource(source);
  const undo = (path, id) => {
    const shared = cell(path, id).model.sharedModel;
    if (shared.canUndo()) shared.undo();
    return shared.getSource();
  };
  const save = (path) => inTime(panel(path).context.save(), 60, "save").then(() => !panel(path).context.model.dirty);
  const interrupt = (path) => void kernel(path)?.interrupt().catch(() => {});
  const restart = (path) => inTime(panel(path).sessionContext.restartKernel(), 60, "restart");
  const inKernel = async (path, expression) => {
    const asked = kernel(path).requestExecute({ code: "", silent: true, store_history: false, user_expressions: { it: expression } });
    const { content } = await inTime(asked.done, 30, "a question to the kernel");
    const { data } = content.user_expressions?.it ?? {};
    if (!data) throw new Error(`the kernel does not know ${expression}: ${JSON.stringify(content)}`);
    return data["text/plain"];
  };

  // --- Live figures ---------------------------------------------------------------------------------------------------
  const controls = (figure) => [...figure.querySelectorAll(".widget-slider, .widget-checkbox, .widget-text")];
  const kind = (control) => (control.matches(".widget-slider") ? "slider" : control.matches(".widget-text") ? "text" : "choice");
  const typed = (control) => Boolean(control.querySelector(".widget-readout[contenteditable=true]"));
  const value = (control) => {
    const input = control.querySelector("input");
    return control.querySelector(".widget-readout")?.textContent ?? (input.type === "text" ? input.value : String(input.checked));
  };
  const nodes = (path) => [...panel(path).node.querySelectorAll(".live-figure")];
  const figures = (path) =>
    nodes(path).map((figure) => {
      const shown = figure.querySelector(".widget-html");
      const image = shown?.querySelector("img");
      return {
        id: [...figure.classList].find((name) => /^live-\w{8,}/.test(name))?.slice(5),
        cell: widgets(path).find((widget) => widget.node.contains(figure))?.model.id,
        picture: Boolean(image?.complete && image.naturalWidth),
        alt: image?.alt ?? "",
        shown: hash(shown?.innerHTML ?? ""),
        alert: figure.querySelector("[role=alert]")?.textContent ?? "",
        note: figure.querySelector(":scope > .no-answer")?.textContent ?? "",
        controls: controls(figure).map((control) => ({ kind: kind(control), typed: typed(control), value: value(control) })),
      };
    });
  const control = (path, id, number) => controls(nodes(path).find((figure) => figure.matches(`.live-${id}`)))[number];
  const focus = (path, id, number) => {
    const found = control(path, id, number);
    found.scrollIntoView({ block: "center" });
    found.querySelector("[role=slider], input").focus();
  };
  const places = (path, id, number) => {
    const found = control(path, id, number);
    found.scrollIntoView({ block: "center" });
    const [handle, track] = [".noUi-handle", ".noUi-base"].map((part) => found.querySelector(part).getBoundingClientRect());
    return { x: handle.x + handle.width / 2, y: handle.y + handle.height / 2, left: track.left, right: track.right };
  };
  const mark = (path, id, number) => { // the number beside a slider, to type over it
    const readout = control(path, id, number).querySelector(".widget-readout");
    readout.scrollIntoView({ block: "center" });
    readout.focus();
    getSelection().selectAllChildren(readout);
  };
  const writeWord = (path, id, number, words) => {
    const input = control(path, id, number).querySelector("input");
    input.value = words;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const tick = (path, id, number) => {
    const input = control(path, id, number).querySelector("input");
    input.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true })); // a hand comes before its click
    input.click();
  };
  const answers = (path) =>
    [...panel(path).node.querySelectorAll(".widget-toggle-button, .widget-toggle-buttons button, .jp-OutputArea details > summary")];
  const answer = (path, share) => {
    const found = answers(path);
    found[Math.floor(share * found.length)]?.click();
    return found.length;
  };
  return {
    errors, open, isOpen, state, accept, cells, run, write, undo, save, interrupt, restart, inKernel,
    figures, focus, places, mark, writeWord, tick, answer,
  };
})();
