// What is below the conversation: what a learner changes in the model, and what the heads look at. chat.js comes first.
"use strict";

// The maps follow the conversation, and an experiment brings its example, until somebody types a sentence into the box.
const EXAMPLE = $("sentence").value;
let typed = false;
$("sentence").oninput = () => (typed = true);
const mention = (text) => {
  if (typed) return;
  $("sentence").value = text.slice(0, 400);
  clearMaps("The maps follow when the answer is there.");
};

// --- Change ----------------------------------------------------------------------------------------------------------

let pending; // what follows a change
let gone = ""; // why the model was started again: it stays told

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
  experiments = own ? [] : ((await manifestOf(BASE)).experiments ?? []); // they are heads of the site's model
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
  if (isOwn(lines) && lines !== used)
    say(`Your lines are being tried, for up to ${PATIENT / 1000} seconds …`, "verdict");
  pending = (problem) => {
    clearTimeout(watch);
    release();
    if (problem) return say(`${problem} The chat still runs on the lines before.`, "verdict");
    const back = isOwn(used) ? "The chat runs on the original lines again." : "";
    say(isOwn(lines) ? "The chat now runs on your lines." : gone || back, "verdict");
    if (isOwn(lines)) $("verdict").append(" ", element("a", { href: "#talk", textContent: "Back to the chat" }));
    gone = "";
    used = lines;
    $("said").replaceChildren();
    say("", "news");
    look();
  };
  tell("change", { wanted: { heads, window, lines } });
  watchOver(lines);
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
// What stands there belongs to an older sentence, or to the model before a change.
const clearMaps = (why) => {
  seen = undefined;
  say(why, "expects");
  say("", "reads");
  $("maps").setAttribute("aria-busy", "true");
};
const look = () => {
  clearMaps("The maps are being computed …");
  tell("look", { sentence: $("sentence").value });
  watchOver(used);
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
  $("maps").removeAttribute("aria-busy");
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
  const box = $("all").parentElement; // where it is wider than the page, it is pushed until the layer is in sight
  box.scrollLeft = Math.min(Math.max(box.scrollLeft, (layer + 1) * TILE - box.clientWidth), layer * TILE);
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
