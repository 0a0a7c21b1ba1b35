// What a notebook's page needs beyond its cells: the set-up cell puts this into its first output, once.
(() => {
  // --- Answers: one control opens them all ----------------------------------------------------------------------------
  // JupyterLab draws a cell's text only when it comes into sight, so what is drawn later is opened, too. VS Code keeps
  // texts in shadow trees. The book also closes outputs (details.hide). Paper can't be clicked on: printing opens all.
  const roots = () => [document, ...[...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean)];
  const answers = () => roots().flatMap((root) => [...root.querySelectorAll("details.answer, details.hide")]);
  const open = (state) => answers().forEach((answer) => (answer.open = state));
  const place = [...document.querySelectorAll(".open-answers:empty")].pop();
  if (place && !window.google?.colab) { // there, a script can't reach the texts
    const label = place.appendChild(document.createElement("label"));
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    label.append(" Open all answers on this page");
    const later = new MutationObserver(() => open(true));
    box.addEventListener("change", () => {
      open(box.checked);
      if (box.checked) later.observe(document.body, { childList: true, subtree: true });
      else later.disconnect();
    });
  }
  if (window.attentionCourse) return; // a set-up cell that is run again, or that of another notebook in the same page
  window.attentionCourse = true;
  addEventListener("beforeprint", () => open(true));
  // JupyterLab takes the Enter key to begin editing, a digit to make a heading of the cell, and x to cut it. On a fold,
  // Enter opens and closes it; on a control, none of these keys is JupyterLab's.
  const CONTROL = ".live-figure :is([role=slider], [type=checkbox], .widget-play button), .widget-toggle-buttons button";
  const press = (event) => {
    const { key, target } = event;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (plain && target.closest?.(CONTROL) && ((key === "Enter" && !event.shiftKey) || key.length === 1)) {
      if (key === " " && target.matches("[role=slider]")) event.preventDefault(); // it would scroll the page
      return event.stopImmediatePropagation();
    }
    const fold = target.closest?.(".jp-MarkdownOutput details > summary")?.parentElement;
    if (!fold || !(key === "Enter" || key === " ")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    fold.open = !fold.open;
  };
  addEventListener("keydown", press, true);
  // From a heading whose section is folded, Shift+Enter goes on behind the section, not into its hidden cells.
  const skip = (event) => {
    if (event.key !== "Enter" || !event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const folded = event.target.closest?.(".jp-Notebook")?.querySelector(".jp-mod-active:has(.jp-showHiddenCellsButton)");
    let next = folded?.nextElementSibling;
    while (next && !next.getClientRects().length) next = next.nextElementSibling;
    if (!next) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const place = next.querySelector(".jp-InputPrompt") ?? next;
    for (const kind of ["mousedown", "mouseup"]) place.dispatchEvent(new MouseEvent(kind, { bubbles: true }));
    next.scrollIntoView({ block: "nearest" });
  };
  addEventListener("keydown", skip, true);
  // Whoever clicks a slider's track, its name, or a value that can't be typed, holds the slider: the next keys would be
  // the notebook's. At once, before a key comes; and after the click, when JupyterLab has taken the keys.
  const hold = (event) => {
    const slider = event.target.closest?.(".live-figure .widget-slider");
    if (!slider || event.button || event.target.isContentEditable || event.target.closest("[role=slider]")) return;
    if (event.type === "mousedown") event.preventDefault(); // which takes the keys to the cell
    slider.querySelector("[role=slider]")?.focus({ preventScroll: true });
  };
  for (const kind of ["pointerdown", "mousedown", "click"]) addEventListener(kind, hold, true);
  // A slider takes the number that is typed beside it only at Enter, as no blur bubbles up to it; and it reads it up to a
  // comma: 0,7 would be 0.
  const take = (event) => {
    const number = event.target;
    if (!number.matches?.(".live-figure .widget-readout") || (event.type === "keydown" && event.key !== "Enter")) return;
    if (/^\s*-?\d*,\d+\s*$/.test(number.textContent)) number.textContent = number.textContent.replace(",", ".");
    if (event.type === "blur" && !event.bubbles) number.dispatchEvent(new FocusEvent("blur", { bubbles: true }));
  };
  addEventListener("keydown", take, true);
  addEventListener("blur", take, true);

  // --- Live figures: names and values for those who hear them ---------------------------------------------------------
  // The sliders of ipywidgets have no name, and say their exponent or the number of their step.
  const say = (element, name, value) => {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  };
  const name = (figure) => {
    for (const slider of figure.querySelectorAll(".widget-slider")) {
      const handle = slider.querySelector("[role=slider]");
      const label = slider.querySelector(".widget-label")?.textContent;
      const readout = slider.querySelector(".widget-readout");
      if (!handle || !label) continue;
      say(handle, "aria-label", label);
      if (!readout) continue;
      say(handle, "aria-valuetext", readout.textContent);
      // A number typed beside a slider of a few values is not one of them: there, it can't be typed. A slider gets its
      // class after it is on the page, so that nothing can be typed beside a slider without one.
      const typed = Boolean(slider.closest(".any-number"));
      if (readout.isContentEditable !== typed) readout.contentEditable = typed;
      if (typed) say(readout, "role", "textbox"), say(readout, "aria-label", label);
    }
  };
  // A picture's text is announced when the hand rests, not at each step of a drag.
  const announce = (figure) => {
    const text = figure.querySelector("img")?.alt;
    let status = figure.querySelector(":scope > [role=status]");
    if (!status) {
      status = figure.appendChild(document.createElement("div"));
      status.setAttribute("role", "status");
      status.className = "heard-only";
      status.dataset.said = text; // the first picture is read where it stands
    }
    if (text && status.dataset.said !== text) status.textContent = status.dataset.said = text;
  };
  const resting = new WeakMap();
  const follow = (figure) => {
    name(figure);
    clearTimeout(resting.get(figure));
    resting.set(figure, setTimeout(() => announce(figure), 700));
  };
  // When a cell is run by Shift+Enter, JupyterLab scrolls the next cell to the middle, and the picture out at the top. In
  // a browser's Python the picture comes after that, and stands out at the bottom.
  const showWhole = (element) => {
    const cell = element.closest(".jp-Cell");
    const panel = cell?.closest(".jp-WindowedPanel-outer");
    if (!panel || !cell.nextElementSibling?.classList.contains("jp-mod-active")) return;
    const [view, box] = [panel, element].map((part) => part.getBoundingClientRect());
    const top = Math.min(box.top - view.top, Math.max(0, box.bottom - view.bottom));
    if (top) panel.scrollBy({ top, behavior: "instant" });
  };
  // --- A new kernel knows neither the figures and buttons nor the names of the one before -------------------------------
  const sayBelow = (element, text) => {
    const note = document.createElement("div");
    note.className = "no-answer";
    note.setAttribute("role", "status");
    element.append(note);
    note.textContent = text;
  };
  // A control was moved, the kernel has nothing to do, and yet no picture comes.
  const setting = (figure) =>
    [...figure.querySelectorAll("[role=slider], input, .widget-toggle-button.mod-active")]
      .map((control) => control.getAttribute("aria-valuetext") ?? `${control.checked} ${control.value} ${control.textContent}`)
      .join();
  const SILENT = {
    "live-figure": "This picture does not follow its controls: the kernel is new. Run the set-up cell, then this one.",
    prediction: "Nobody notes your choice: the kernel is new. Run the set-up cell, then this one.",
  };
  const awaited = new WeakMap();
  const drawn = new WeakMap(); // the setting when the last picture came, of figures that a hand has touched
  const answered = (figure) => {
    clearTimeout(awaited.get(figure));
    if (drawn.has(figure)) drawn.set(figure, setting(figure));
    figure.querySelector(":scope > .no-answer")?.remove();
  };
  const wait = (figure) => {
    const check = () => {
      const kernel = figure.closest(".jp-NotebookPanel")?.querySelector(".jp-Notebook-ExecutionIndicator");
      if (kernel && kernel.dataset.status !== "idle") return wait(figure);
      if (!kernel || setting(figure) === drawn.get(figure) || figure.querySelector(":scope > .no-answer")) return;
      sayBelow(figure, SILENT[figure.classList.contains("prediction") ? "prediction" : "live-figure"]);
    };
    clearTimeout(awaited.get(figure));
    awaited.set(figure, setTimeout(check, 2500));
  };
  const advise = (output) => {
    if (output.dataset.advised || !/^NameError: name '\w+' is not defined/m.test(output.textContent)) return;
    output.dataset.advised = "yes";
    sayBelow(output, "If a cell above makes this name: choose Run → Run All Above Selected Cell, then run this cell.");
  };
  // A verdict is about what was run. JupyterLab marks the cells that were edited since.
  const source = (cell) => [...cell.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n");
  const compare = (verdict) => {
    if (verdict.dataset.compared) return;
    verdict.dataset.compared = "yes";
    const cell = verdict.closest(".jp-CodeCell");
    const [, name] = (cell && /\bcheck\.\w+\((\w+)\)/.exec(source(cell))) || [];
    const says = verdict.textContent.includes("run its cell first");
    const edited = [...(cell?.parentElement.querySelectorAll(".jp-CodeCell.jp-mod-dirty") ?? [])];
    if (!name || says || !edited.some((other) => new RegExp(`^\\s*def ${name}\\b`, "m").test(source(other)))) return;
    const then = "This verdict is about the version before. Run that cell, then this one.";
    sayBelow(verdict.parentElement, `You edited the cell of ${name}, but you have not run it since. ${then}`);
  };
  const start = (figure) => {
    if (figure.dataset.followed) return;
    figure.dataset.followed = "yes";
    const isFigure = figure.classList.contains("live-figure");
    const touched = () => {
      if (!drawn.has(figure)) drawn.set(figure, setting(figure));
      wait(figure);
    };
    for (const kind of ["pointerdown", "keydown", "input", ...(isFigure ? [] : ["click"])]) figure.addEventListener(kind, touched, true);
    if (isFigure) for (const later of [0, 150, 400, 1000]) setTimeout(() => showWhole(figure), later);
    const watched = { childList: true, subtree: true, characterData: true, attributeFilter: ["aria-valuetext", "class"] };
    const changed = (changes) => {
      if (isFigure) follow(figure);
      const elements = changes.map(({ target }) => (target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement));
      if (elements.some((element) => element?.closest(".widget-html"))) answered(figure);
      else if (drawn.has(figure) && drawn.get(figure) !== setting(figure)) wait(figure);
    };
    new MutationObserver(changed).observe(figure, watched);
    if (!isFigure) return;
    name(figure);
    announce(figure);
  };
  // --- A figure that plays: by itself once, when it is in sight and the predictions above it are made -------------------
  // Not before, as it shows the answer; not where a hand was quicker; and not for who wants less motion.
  const player = (box) => {
    const button = box.querySelector("button");
    if (!button) return;
    say(button, "aria-label", button.querySelector(".fa-pause") ? "Pause" : "Play");
    if (box.dataset.seen) return;
    box.dataset.seen = "yes";
    const figure = box.closest(".live-figure");
    const above = (prediction) => prediction.compareDocumentPosition(figure) & Node.DOCUMENT_POSITION_FOLLOWING;
    const begin = () => {
      const predictions = [...(figure.closest(".jp-Notebook") ?? document).querySelectorAll(".prediction")].filter(above);
      const made = predictions.every((prediction) => prediction.querySelector(".mod-active"));
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (made && !still && !drawn.has(figure) && button.isConnected) button.click();
    };
    const seen = ([{ isIntersecting }], observer) => {
      if (!isIntersecting) return;
      observer.disconnect();
      setTimeout(begin, 1500);
    };
    new IntersectionObserver(seen, { threshold: 0.6 }).observe(figure);
  };
  // A check that is run again shows the hints that were open before.
  const opened = new WeakMap(); // of each cell
  const hint = (fold) => /^Hint \d/.test(fold.firstElementChild?.textContent) && fold.closest(".jp-Cell");
  const remember = ({ target }) => {
    const cell = target.isConnected && hint(target);
    if (!cell) return;
    if (!opened.has(cell)) opened.set(cell, new Set());
    opened.get(cell)[target.open ? "add" : "delete"](target.firstElementChild.textContent);
  };
  addEventListener("toggle", remember, true);
  const reopen = (fold) => {
    if (fold.dataset.seen) return;
    fold.dataset.seen = "yes";
    if (opened.get(hint(fold) || fold)?.has(fold.firstElementChild.textContent)) fold.open = true;
  };
  const picture = (image) => {
    if (image.dataset.shown || image.closest("[class^=still-], .panel")) return; // the first stands in for a live figure
    image.dataset.shown = "yes";
    for (const later of [0, 150, 400]) setTimeout(() => showWhole(image), later);
  };
  const look = () => {
    document.querySelectorAll(".live-figure, .prediction").forEach(start);
    document.querySelectorAll(".live-figure .widget-play").forEach(player);
    document.querySelectorAll(".jp-OutputArea-output[data-mime-type$=stderr]").forEach(advise);
    document.querySelectorAll(".jp-OutputArea-output.jp-RenderedHTML img").forEach(picture);
    document.querySelectorAll(".jp-OutputArea-output [role=status] details").forEach(reopen);
    document.querySelectorAll(".jp-OutputArea-output [role=status]:not(.no-answer)").forEach(compare);
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
})();
