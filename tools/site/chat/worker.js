// What runs beside the page: Python, the model, and the conversation. The page asks by messages, {do: ...}; what comes
// back are messages, too, and an error is a sentence: {problem: ...}.
"use strict";
importScripts("pyodide/start.js");

const BASE = new URL("./", self.location.href);
const post = (message, transfer = []) => self.postMessage(message, transfer);
// A module with one instruction of SIMD.
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

class Trouble extends Error {} // its message is a sentence for the reader

let python; // a promise
let chat;

const startPython = async () => {
  if (!WebAssembly.validate(new Uint8Array(SIMD))) {
    throw new Trouble("This browser is too old for the model: it has no SIMD in WebAssembly. A newer one has it.");
  }
  try {
    self.pyodide = await loadPyodide({ indexURL: new URL("pyodide/", BASE).href });
  } catch (error) {
    console.error(error);
    throw new Trouble("Python could not be started. Check your connection, and press the button again.");
  }
  pyodide.runPython("import conversation, packed_products; packed_products.install()");
};

const actions = {
  async start() {
    await (python = startPython());
  },
  // While Python starts, the page has fetched the model, or read a file of the reader's.
  async load({ content, name }) {
    await python;
    post({ note: "The model is being unpacked …" });
    const path = name.replaceAll("/", "_"); // as messages name it
    pyodide.FS.writeFile(path, new Uint8Array(content), { canOwn: true });
    const found = pyodide.runPython("conversation.opened")(path);
    const problem = found.get(1);
    chat = found.get(0);
    pyodide.FS.unlink(path);
    if (problem) throw new Trouble(problem);
    pyodide.globals.set("chat", chat);
    pyodide.runPython("packed_products.settle(chat.model); chat.warm_up()");
    content.transfer?.(0); // give the file's memory back now
    // Chromium keeps it for the message that brought it, until somebody asks for as much.
    setTimeout(() => new ArrayBuffer(2 ** 26), 100);
    post({ ready: JSON.parse(chat.facts()) });
  },
  async ask({ text, temperature }) {
    const say = (piece, probability) => post({ piece, probability });
    const read = (tokens, of) => post({ read: tokens, of_tokens: of });
    post({ ended: await chat.answer(text, temperature, say, read) });
    chat.warm_up();
  },
  stop: () => chat.stop(),
  begin: () => chat.begin(),
  change: ({ wanted }) => post({ changed: chat.change(JSON.stringify(wanted)) }),
  look({ sentence }) {
    const found = chat.look(sentence);
    const [told, maps] = found.toJs();
    found.destroy();
    post({ looked: JSON.parse(told), maps }, [maps.buffer]);
  },
};

const sentence = (error) => {
  if (error instanceof Trouble) return error.message;
  console.error(error);
  if (error instanceof RangeError || /MemoryError|out of memory/i.test(`${error}`)) {
    return "This tab has too little memory for the model. Close other tabs, or try a computer with more memory.";
  }
  return "Something went wrong that this page does not know. Reload the page; the model is kept.";
};

self.onmessage = async ({ data }) => {
  try {
    await actions[data.do](data);
  } catch (error) {
    post({ problem: sentence(error), doing: data.do });
  }
};
