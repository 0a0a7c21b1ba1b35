// The page: it asks worker.js, and shows what comes back.
"use strict";

const $ = (id) => document.getElementById(id);
const BASE = new URL("./", location.href);
const UNANSWERED = 4000; // ms after Stop, until the worker counts as stuck in somebody's function
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
    const { content, keeps } = await modelBytes(BASE, hear);
    if (mine !== worker) return;
    isStored = keeps;
    say("Python is starting …");
    worker.postMessage({ do: "load", content }, [content]);
  } catch (error) {
    if (mine === worker) hear({ problem: error instanceof Trouble ? error.message : `${error}`, doing: "start" });
  }
};

$("start").onclick = () => {
  if (!isAble($("start"))) return;
  able($("start"), false);
  say("Python and the model are being fetched …");
  begin();
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
    say(
      isStored
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
  tell("ask", { text, temperature: Number($("temperature").value) });
};
$("text").onkeydown = (event) => {
  if (event.key === "Escape" && asking) stop();
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!asking) $("ask").requestSubmit();
};
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
  watchOver(UNANSWERED);
};

// A function that never returns keeps its worker: only a new one helps.
let watch;
const watchOver = (ms) => {
  clearTimeout(watch);
  watch = setTimeout(restart, ms);
};

const restart = () => {
  const reason = "Your function did not come back, so the model is started again, with the original function.";
  hold();
  if (asking) finish(reason);
  say(reason, "verdict");
  say("The model is started again …");
  used = original;
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
  full: "The conversation has reached 1,024 tokens, and the model can look back on no more. Begin a new conversation.",
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
  if (!unsent) mention(text);
};

const summary = (tokens) => {
  if (!tokens.length) return "The model ended its answer at once.";
  const rarest = tokens.reduce((a, b) => (b.probability < a.probability ? b : a));
  const count = tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
  return `The answer has ${count}. The most surprising one is ${quoted(rarest.piece)}, with a probability of ${percent(rarest.probability)}.`;
};

// The maps follow the conversation, and an experiment brings its example, until somebody types a sentence into the box.
const EXAMPLE = $("sentence").value;
let typed = false;
$("sentence").oninput = () => (typed = true);
const mention = (text) => {
  if (typed) return;
  $("sentence").value = text.slice(0, 400);
  look();
};

// --- Change ----------------------------------------------------------------------------------------------------------

let pending; // what follows a change

// A message waits until a change, or a new start, is over.
let settled = Promise.resolve();
let release;
const hold = () => {
  if (release) return;
  settled = new Promise((resolve) => {
    release = () => {
      release = undefined;
      resolve();
    };
  });
};

let experiments = [];

const listExperiments = async () => {
  experiments = (await manifestOf(BASE)).experiments ?? [];
  const names = ["none", ...experiments.map(({ name }) => name), "a choice of your own"];
  $("experiment").replaceChildren(...names.map((textContent, value) => element("option", { textContent, value })));
  $("experiment").lastChild.disabled = true;
};
$("experiment").onchange = () => {
  const { heads } = experiments[$("experiment").value - 1] ?? { heads: [] };
  off.clear();
  for (const [layer, head] of heads) off.add(layer * facts.heads + head);
  if (!typed) $("sentence").value = EXAMPLE;
  change();
};
$("window").onchange = () => change();
$("on").onchange = () => {
  if ($("on").checked) off.delete(chosen());
  else off.add(chosen());
  change();
};
$("own").onsubmit = (event) => {
  event.preventDefault();
  change($("lines").value);
};
$("original").onclick = () => {
  $("lines").value = original;
  change(original);
};

const change = (lines = used) => {
  showHeads();
  const heads = [...off].map((number) => [Math.floor(number / facts.heads), number % facts.heads]);
  const window = $("window").value ? $("window").value.split(",").map(Number) : null;
  hold();
  pending = (problem) => {
    clearTimeout(watch);
    release();
    if (problem) return say(`${problem} The chat still runs on the lines before.`, "verdict");
    const [own, owned] = [lines, used].map((some) => some.trim() !== original.trim());
    say(own ? "The chat now runs on your lines." : owned ? "The chat runs on the original lines again." : "", "verdict");
    used = lines;
    $("said").replaceChildren();
    say("", "news");
    look();
  };
  tell("change", { wanted: { heads, window, lines } });
  watchOver(2 * UNANSWERED);
};

const showHeads = () => {
  const { heads } = facts;
  const names = [...off].sort((a, b) => a - b).map((number) => `${Math.floor(number / heads)}.${number % heads}`);
  say(names.length ? `Off are the heads ${names.join(", ")}, written as layer.head.` : "All heads are on.", "off");
  const same = ({ heads: list }) => list.length === off.size && list.every(([l, h]) => off.has(l * heads + h));
  const found = experiments.findIndex(same);
  $("experiment").value = off.size ? (found < 0 ? experiments.length + 1 : found + 1) : 0;
  $("on").checked = !off.has(chosen());
};

// --- Look ------------------------------------------------------------------------------------------------------------

const chosen = () => Number($("layer").value) * facts.heads + Number($("head").value);
const look = () => {
  tell("look", { sentence: $("sentence").value });
  if (used.trim() !== original.trim()) watchOver(5 * UNANSWERED);
};
$("try").onsubmit = (event) => {
  event.preventDefault();
  look();
};

const listing = (next) => next.map(([token, p]) => `${quoted(token)} ${percent(p)}`).join(", ");

const showMaps = () => {
  const { tokens, next, plain } = seen;
  const texts = [`After the last token, the model expects ${listing(next)}.`];
  if (JSON.stringify(next) !== JSON.stringify(plain)) texts.push(`Without your changes it expects ${listing(plain)}.`);
  $("expects").replaceChildren(...texts.map((textContent) => element("p", { textContent })));
  $("query").replaceChildren(...tokens.map((token, i) => element("option", { textContent: shown(token), value: i })));
  $("query").value = tokens.length - 1;
  showOne();
};

const showOne = () => {
  const [layer, head, query] = ["layer", "head", "query"].map((id) => Number($(id).value));
  say(layer, "layer-is");
  say(head, "head-is");
  $("on").checked = !off.has(chosen());
  if (!seen) return;
  const { tokens } = seen;
  drawAll($("all"), seen, off, chosen());
  drawOne($("one"), seen, chosen(), query);
  const best = tokens.map((token, i) => {
    const [[key, weight]] = largest(seen, chosen(), i, 1);
    return `${quoted(token)} on ${quoted(tokens[key])} ${weight.toFixed(2)}`;
  });
  $("one").setAttribute("aria-label", `Layer ${layer}, head ${head}. The largest weight of each token: ${best.join(", ")}.`);
  const read = largest(seen, chosen(), query).map(([key, weight]) => `${weight.toFixed(2)} on ${quoted(tokens[key])}`);
  say(`Layer ${layer}, head ${head}: ${quoted(tokens[query])} puts a weight of ${read.join(", ")}.`, "reads");
};
for (const id of ["layer", "head", "query"]) $(id).oninput = showOne;

$("all").onclick = ({ offsetX, offsetY }) => {
  const { width, height } = $("all").getBoundingClientRect();
  $("layer").value = Math.floor((offsetX / width) * facts.layers);
  $("head").value = Math.floor((offsetY / height) * facts.heads);
  showOne();
};
$("one").onclick = ({ offsetY }) => {
  const query = Math.floor((offsetY - MARGIN) / CELL);
  if (!seen || query < 0 || query >= seen.T) return;
  $("query").value = query;
  showOne();
};
