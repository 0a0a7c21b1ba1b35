// The model's file: fetched from this site in parts, each checked by its size and SHA-256, kept by the browser for the
// next visit, and inflated while it comes. This runs in the page, so that the
// model comes while Python starts in the worker.
"use strict";

class Trouble extends Error {} // its message is a sentence for the reader

const STORE = "attention-course-model";
const TRIALS = 5; // of a part, before the reader is asked to press again
const PATIENCE = 30_000; // ms without a byte, after which a connection counts as lost
const received = new Map(); // parts that the browser did not keep, by name: a second try begins where the first one ended

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// Give memory back now: left to the browser, 300 MB lie about for a while.
const free = (array) => array.buffer.transfer?.(0);
const inMegabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

async function manifestOf(base) {
  const answer = await fetch(new URL("model.json", base), { cache: "no-cache" }).catch(() => null);
  if (!answer?.ok) throw new Trouble("This site does not answer. Check your connection, and press the button again.");
  return answer.json();
}

async function openStore() {
  try {
    return await caches.open(STORE);
  } catch {
    return null; // some private windows have none, and pages that came by plain http
  }
}

async function isKept(base) {
  const [{ parts }, store] = await Promise.all([manifestOf(base), openStore()]);
  if (!store) return false;
  const found = await Promise.all(parts.map((part) => store.match(addressOf(part, base))));
  return found.every(Boolean);
}

const addressOf = (part, base) => new URL(`model/${part.name}`, base).href;

// The whole file. tell({bytes, of}) is called as it comes, tell({note}) when something is in the way.
async function modelBytes(base, tell) {
  if (!self.DecompressionStream) throw new Trouble("This browser is too old for the model. A newer one can run it.");
  const manifest = await manifestOf(base);
  const waiting = {};
  const work = () => collected(base, manifest, tell);
  if (!navigator.locks) return work();
  const result = await navigator.locks.request(STORE, { ifAvailable: true }, (lock) => (lock ? work() : waiting));
  if (result !== waiting) return result;
  tell({ note: "Another tab is fetching the model. This tab waits for it." });
  return navigator.locks.request(STORE, work);
}

async function collected(base, { bytes, parts }, tell) {
  const store = await openStore();
  const of = parts.reduce((sum, part) => sum + part.bytes, 0);
  const inflater = new DecompressionStream("gzip");
  const writer = inflater.writable.getWriter();
  const whole = inflated(inflater.readable, bytes);
  whole.catch(() => {}); // it is awaited below; until then, nobody is to complain
  let before = 0;
  let keeps = Boolean(store);
  try {
    for (const part of parts) {
      const progress = (inPart) => tell({ bytes: before + inPart, of });
      let content = received.get(part.name) ?? (await kept(store, part, base));
      if (!content) {
        content = await fetched(part, base, progress, tell, before);
        const put = await store?.put(addressOf(part, base), new Response(content)).then(() => true, () => false);
        keeps &&= Boolean(put);
        if (!put) received.set(part.name, content);
      }
      progress(part.bytes);
      before += part.bytes;
      await Promise.race([writer.write(content), whole]); // which fails where nobody has room for what is inflated
      if (!received.has(part.name)) free(content);
    }
    await Promise.race([writer.close(), whole]);
    const result = await whole;
    received.clear();
    await forgetOthers(store, parts, base);
    return { content: result.buffer, keeps };
  } catch (error) {
    writer.abort().catch(() => {});
    if (error instanceof Trouble) throw error;
    if (error instanceof RangeError) throw new Trouble("This tab has too little memory for the model. Close other tabs.");
    received.clear();
    await self.caches?.delete(STORE).catch(() => {});
    throw new Trouble("The model's file is damaged. Press the button again to fetch it anew.");
  }
}

async function kept(store, part, base) {
  const found = await store?.match(addressOf(part, base)).catch(() => undefined);
  const content = found && new Uint8Array(await found.arrayBuffer());
  return content?.length === part.bytes ? content : undefined;
}

async function fetched(part, base, progress, tell, before) {
  for (let trial = 1; ; trial++) {
    let problem = "The connection was lost";
    try {
      const content = await download(addressOf(part, base), part.bytes, progress, trial > 1);
      if (await isRight(content, part)) return content;
      problem = "What came was damaged";
    } catch (error) {
      if (error instanceof Trouble) throw error;
    }
    const so_far = `${problem} after ${inMegabytes(before)}.`;
    if (trial === TRIALS) throw new Trouble(`${so_far} Press the button again to go on from there.`);
    tell({ note: `${so_far} Trying again …` });
    const online = new Promise((done) => addEventListener("online", done, { once: true }));
    await Promise.race([sleep(500 * 2 ** trial), online]);
  }
}

async function download(address, bytes, progress, again) {
  const controller = new AbortController();
  let clock;
  const alive = () => {
    clearTimeout(clock);
    clock = setTimeout(() => controller.abort(), PATIENCE);
  };
  try {
    alive();
    const answer = await fetch(address, { signal: controller.signal, cache: again ? "reload" : "default" });
    if (answer.status === 404) throw new Trouble("This site has changed. Reload the page.");
    if (!answer.ok) throw new Error(answer.statusText);
    const content = new Uint8Array(bytes);
    let at = 0;
    for (const reader = answer.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) return content.subarray(0, at);
      alive();
      if (at + value.length > bytes) return content.subarray(0, 0); // not what was published
      content.set(value, at);
      at += value.length;
      free(value);
      progress(at);
    }
  } finally {
    clearTimeout(clock);
  }
}

async function isRight(content, part) {
  if (content.length !== part.bytes) return false;
  if (!crypto.subtle) return true; // a page by plain http: gzip's own checksum remains
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") === part.sha256;
}

async function inflated(stream, bytes) {
  const content = new Uint8Array(bytes);
  let at = 0;
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > bytes) throw new Error("too long");
    content.set(value, at);
    at += value.length;
    free(value);
  }
  if (at !== bytes) throw new Error("cut off");
  return content;
}

async function forgetOthers(store, parts, base) {
  const wanted = new Set(parts.map((part) => addressOf(part, base)));
  for (const request of (await store?.keys()) ?? []) if (!wanted.has(request.url)) await store.delete(request);
}
