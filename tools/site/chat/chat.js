// The page: it asks worker.js, and shows what comes back. The rest of it, below the conversation, is in heads.js.
"use strict";

const $ = (id) => document.getElementById(id);
const BASE = new URL("./", location.href);
const PATIENT = 10_000; // ms, after which a worker that runs somebody's function counts as stuck in it
const percent = (p) => (p >= 0.995 ? "more than 99\u00a0%" : p < 0.005 ? "less than 1\u00a0%" : `${Math.round(100 * p)}\u00a0%`);
const quoted = (token) => `“${shown(token)}”`;
const element = (name, properties = {}, children = []) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
};

let worker;
let isStored = true; // the browser keeps the model
let facts; // of the model, once it is there
let own; // a file of the reader's, in place of the model of this site
let asking = false; // an answer is being written
let original = "";
let used = ""; // the lines that the model runs on
const off = new Set(); // numbers of heads: layer · heads + head
let seen; // the maps on the sentence
let answer; // the answer that is being written

// --- Start -----------------------------------------------------------------------------------------------------------

const say = (text, where = "state") => ($(where).textContent = text);
const able = (button, is) => button.setAttribute("aria-disabled", String(!is));
const isAble = (button) => button.getAttribute("aria-disabled") !== "true";

const tell = (what, message = {}) => worker.postMessage({ do: what, ...message });

// Python starts in the worker while the model comes.
const begin = async () => {
  worker?.terminate();
  worker = new Worker("worker.js");
  worker.onmessage = ({ data }) => hear(data);
  worker.onerror = () => hear({ problem: "This page could not be loaded completely. Check your connection, and reload it." });
  const mine = worker;
  tell("start");
  try {
    const name = own?.name ?? "model.gguf";
    const { content, keeps } = own ? { content: await own.arrayBuffer(), keeps: true } : await modelBytes(BASE, hear);
    if (mine !== worker) return;
    isStored = keeps;
    say("Python is starting …");
    worker.postMessage({ do: "load", content, name }, [content]);
  } catch (error) {
    if (mine === worker) hear({ problem: error instanceof Trouble ? error.message : `${error}`, doing: "start" });
  }
};

// A file of the reader's is looked at before it is read: a tab has no room for more.
const LARGEST = 700e6; // bytes
const refusal = async (file) => {
  if (file.size > LARGEST) {
    return `${file.name} has ${inMegabytes(file.size)}, and a tab has room for 700 MB. A file with fewer bits for each number, such as Q4_0, may fit.`;
  }
  const first = await file.slice(0, 4).text().catch(() => "");
  return first === "GGUF" ? "" : `${file.name} is no GGUF file: it does not begin with these four letters.`;
};
const openFile = async (file) => {
  if (!file || asking) return;
  const why = await refusal(file);
  if (why) return say(why);
  own = file;
  beginAnew(`${file.name} is being read …`);
};
const beginAnew = (note) => {
  able($("start"), false);
  $("works").hidden = true; // what stands there is of another model
  off.clear();
  $("said").replaceChildren();
  say("", "news");
  say(note);
  begin();
};
$("file").onchange = () => openFile($("file").files[0]);
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  openFile(event.dataTransfer.files[0]);
});

$("start").onclick = () => {
  if (!isAble($("start")) || asking) return;
  own = undefined;
  beginAnew("Python and the model are being fetched …");
};

isKept(BASE).then((kept) => {
  if (kept) say("Start (the model is already in this browser)", "start");
}, () => {});

const hear = (message) => {
  for (const [name, react] of Object.entries(reactions)) if (name in message) return react(message);
};

const reactions = {
  bytes({ bytes, of }) {
    $("progress").hidden = false;
    $("progress").value = bytes / of;
    say(`${(bytes / 1e6).toFixed(1)} of ${(of / 1e6).toFixed(1)} MB of the model are here.`);
  },
  note: ({ note }) => say(note),
  ready({ ready }) {
    facts = ready;
    $("begin").querySelectorAll("#start, #progress, #terms").forEach((node) => (node.hidden = true));
    $("start").hidden = !own; // from a model of one's own there is a way back
    able($("start"), Boolean(own));
    say(
      own
        ? `${own.name} is ready: ${(facts.parameters / 1e6).toFixed(1)} million parameters. ` +
            (facts.talks ? "" : "It has no chat template that this page knows, so it continues your text.")
        : isStored
        ? "The model is ready."
        : "The model is ready. Your browser could not keep it, so the next visit will fetch it again. The usual reason is " +
            "a private window, or a full disk.",
    );
    const first = $("works").hidden;
    $("works").hidden = false;
    setUp(first);
  },
  piece: ({ piece, probability }) => answer?.add(piece, probability),
  read({ read, of_tokens: of }) {
    if (of > 64) say(`The model has read ${read} of ${of} tokens …`, "news");
  },
  ended: ({ ended }) => finish(ended),
  changed: ({ changed }) => pending(changed),
  looked({ looked, maps }) {
    clearTimeout(watch);
    if (looked.problem) return say(looked.problem, "expects");
    seen = { ...looked, maps, ...facts, T: looked.tokens.length };
    showMaps();
  },
  problem({ problem, doing }) {
    if (doing === "ask") return finish(problem);
    able($("start"), true);
    $("start").hidden = false;
    say(problem);
  },
};

const setUp = (first) => {
  const { layers, heads } = facts;
  if (!first) return change(); // a new worker knows nothing of what was switched off
  original = used = $("lines").value = facts.lines;
  $("lines").rows = original.split("\n").length;
  Object.assign($("layer"), { max: layers - 1, value: Math.min(18, layers - 1) });
  Object.assign($("head"), { max: heads - 1, value: Math.min(6, heads - 1) });
  say(facts.talks ? "Your message" : "A text for the model to continue", "asks");
  $("tries").hidden = !facts.talks;
  if (!facts.talks && !typed) $("text").value = "The capital of France is";
  listExperiments();
  showHeads();
  look();
  $("text").focus();
};

// --- Talk ------------------------------------------------------------------------------------------------------------

$("ask").onsubmit = async (event) => {
  event.preventDefault();
  if (asking) return stop();
  const text = $("text").value.trim();
  if (!text) return;
  setAsking(true);
  await settled;
  say("", "news");
  answer = newAnswer(text);
  $("text").value = "";
  mention(text);
  tell("ask", { text, temperature: Number($("temperature").value) });
};
$("text").onkeydown = (event) => {
  if (event.key === "Escape" && asking) stop();
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!asking) $("ask").requestSubmit();
};
for (const button of document.querySelectorAll("#tries button")) {
  button.onclick = () => {
    $("text").value = button.textContent;
    $("text").focus();
  };
}
$("anew").onclick = () => {
  tell("begin");
  $("said").replaceChildren();
  say("A new conversation begins.", "news");
  $("text").focus();
};

// What would change the model waits until the answer is there.
const setAsking = (is) => {
  asking = is;
  say(is ? "Stop" : "Send", "send");
  for (const node of document.querySelectorAll("#anew, #experiment, #window, #on, #own button")) node.disabled = is;
};

const stop = () => {
  tell("stop");
  watchOver(used);
};

// A function that never returns keeps its worker: only a new one helps.
let watch;
const watchOver = (lines) => {
  clearTimeout(watch);
  if (isOwn(lines)) watch = setTimeout(restart, PATIENT);
};
const isOwn = (lines) => lines.trim() !== original.trim();

const restart = () => {
  const reason = "Your function did not come back, so the model is started again, with the original function.";
  gone = reason;
  used = original;
  hold();
  if (asking) finish(reason);
  say(reason, "verdict");
  say("The model is started again …");
  begin();
};

const newAnswer = (text) => {
  const [mine, its] = [element("p", { textContent: text }), element("p")];
  const turn = element("div", {}, [
    element("p", { className: "who", textContent: "You" }), mine,
    element("p", { className: "who", textContent: "The model" }), its,
  ]);
  $("said").append(turn);
  const tokens = [];
  return {
    text, turn, tokens,
    add(piece, probability) {
      const bits = -Math.log2(Math.max(probability, 1e-9));
      const span = element("span", { textContent: piece, title: `probability ${percent(probability)}` });
      span.style.setProperty("--surprise", Math.min(bits / 8, 1).toFixed(2));
      its.append(span);
      tokens.push({ piece, probability });
      $("said").scrollTop = $("said").scrollHeight;
    },
  };
};

const WHY = {
  end: "",
  stopped: "You stopped the answer.",
  long: "The answer was cut at 200 tokens.",
  full: "The conversation is as long as the model can look back. Begin a new conversation.",
};

const finish = (ended) => {
  clearTimeout(watch);
  setAsking(false);
  if (!answer) return say(ended, "news");
  const { text, turn, tokens } = answer;
  const unsent = !(ended in WHY) || (ended === "full" && !tokens.length);
  if (unsent) {
    if (!tokens.length) turn.remove();
    $("text").value ||= text;
  }
  const reason = ended === "unread" ? "You stopped the answer before its first token." : (WHY[ended] ?? ended);
  say([reason, unsent ? "" : summary(tokens)].filter(Boolean).join(" "), "news");
  $("listed").querySelector("ol").replaceChildren(
    ...tokens.map(({ piece, probability }) => element("li", { textContent: `${quoted(piece)}: ${percent(probability)}` })),
  );
  answer = undefined;
  if (!typed) look();
};

const summary = (tokens) => {
  if (!tokens.length) return "The model ended its answer at once.";
  const rarest = tokens.reduce((a, b) => (b.probability < a.probability ? b : a));
  const count = tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
  return `The answer has ${count}. The most surprising one is ${quoted(rarest.piece)}, with a probability of ${percent(rarest.probability)}.`;
};
