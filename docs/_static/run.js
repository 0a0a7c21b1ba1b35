// The book's exercises run where they stand: the code is a text to edit, and a button runs the check below it, in
// JupyterLite's Python. Nothing of that is fetched before a button is pressed. Without this script, both can be read.
"use strict";
if (document.querySelector("a[href*='lite/lab/index.html']") && location.protocol !== "file:") {
  const address = new URL("run_worker.js", document.currentScript.src);
  const FIRST = "Write your code above. The first press fetches Python, 40 MB.";
  const STARTING = "Python is starting. The first time takes longest.";
  const LOST = "Python does not answer. Check your connection, and press the button again.";
  const cells = [...document.querySelectorAll(".cell")].filter(cell => cell.querySelector(".cell_input pre"));
  const codes = () => cells.map(cell => {
    const box = cell.querySelector("textarea");
    return box ? box.value || box.placeholder : cell.querySelector("pre").textContent;
  });
  const running = new Map(); // of each check, what ends it
  let worker;

  const end = text => {
    worker = worker.terminate();
    for (const show of running.values()) show(`<p>${text}</p>`);
  };
  const start = () => {
    worker = new Worker(address);
    worker.onmessage = ({data: [place, html]}) => running.get(place)(html);
    worker.onerror = () => end(LOST);
  };

  const element = (name, properties, children = []) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };
  const enliven = (exercise, check, place) => {
    const [code, call] = [exercise, check].map(cell => cell.querySelector("pre").textContent.trim());
    const output = check.querySelector(".cell_output");
    output.setAttribute("aria-live", "polite");
    const fold = output.closest("details") ?? {}; // where it would answer a prediction
    const input = element("textarea", {value: code, wrap: "off", spellcheck: false, autocapitalize: "off"});
    input.placeholder = code; // an emptied box shows what stood there, and it runs
    input.setAttribute("aria-label", `Your code for ${call}`);
    // A reload, and the way back from a link, keep what was written, if the browser allows a page to keep anything.
    const kept = `${location.pathname} ${call}`;
    try {
      input.value = sessionStorage[kept] || code;
      if (input.value !== code) output.innerHTML = "<p>Your code is kept. Press Run.</p>";
      input.addEventListener("input", () => (sessionStorage[kept] = input.value));
    } catch {}
    const fit = () => (input.rows = input.value.split("\n").length + 1);
    input.addEventListener("input", fit);
    fit();
    const button = element("button", {type: "button"});
    const name = word => Object.assign(button, {textContent: word, ariaLabel: `${word} ${call}`});
    name("Run");
    const press = () => {
      if (running.has(place)) return end("Stopped.");
      const opened = [...output.querySelectorAll("details[open] > summary")].map(hint => hint.textContent);
      output.innerHTML = `<p>${worker ? "Running … If it does not end, press Stop." : STARTING}</p>`;
      name("Stop");
      fold.open = true;
      running.set(place, html => {
        running.delete(place);
        output.innerHTML = `<div class="output text_html">${html}</div>`;
        for (const hint of output.querySelectorAll("summary"))
          if (opened.includes(hint.textContent)) hint.parentNode.open = true;
        if ([input, button].includes(document.activeElement)) output.scrollIntoView({block: "nearest"});
        name("Run");
      });
      if (!worker) start();
      worker.postMessage([place, JSON.stringify(codes().slice(0, place + 2))]);
      document.querySelectorAll(".run small").forEach(note => note.remove());
    };
    button.addEventListener("click", press);
    // As in a notebook, Shift+Enter runs, a new line begins where the code does, and Backspace goes a step back. Tab goes
    // on to the button.
    input.addEventListener("keydown", event => {
      const line = input.value.slice(0, input.selectionStart).split("\n").at(-1);
      if (event.key === "Backspace" && input.selectionStart === input.selectionEnd && /^( {4})+$/.test(line))
        input.selectionStart -= 4; // the key itself takes what is selected
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      if (event.shiftKey || event.ctrlKey) return press();
      document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}${line.endsWith(":") ? "    " : ""}`);
    });
    exercise.querySelector(".highlight").replaceChildren(input);
    const bar = element("div", {className: "run"}, [button, element("small", {textContent: FIRST})]);
    check.querySelector(".cell_input").after(bar);
  };
  cells.forEach((cell, place) => cell.classList.contains("tag_exercise") && enliven(cell, cells[place + 1], place));
}
