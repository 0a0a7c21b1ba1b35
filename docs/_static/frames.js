// The book's live figures: controls over pictures that were drawn when the site was built (tools/site/frames.py).
// Without this script, each figure is a still picture.
"use strict";
{
  const folder = new URL("frames/", document.currentScript.src);
  const grids = {}; // by figure: a promise of its pictures, once somebody reaches for its controls
  const arrived = {};
  const images = {}; // by address: kept, so that they stay loaded
  window.liveFrames = (figure, grid) => arrived[figure](grid);

  const gridOf = figure =>
    (grids[figure] ??= new Promise((yes, no) => {
      arrived[figure] = yes;
      const script = document.createElement("script"); // unlike fetch, it works in a page opened from a disk, too
      script.onerror = () => (delete grids[figure], no()); // the next time may be luckier
      script.src = new URL(`${figure}.js`, folder);
      document.head.append(script);
    }));

  const element = (name, properties = {}, children = []) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };

  // Each control answers to `place`, the number of its stop.
  const makers = {
    range: ({texts}, id) => {
      const input = element("input", {type: "range", id, min: 0, max: texts.length - 1, step: 1});
      const text = element("span", {className: "live-value"});
      text.setAttribute("aria-hidden", "true"); // the slider says it itself
      text.style.minWidth = `${Math.max(...texts.map(text => text.length))}ch`;
      const set = place => {
        input.value = place;
        text.textContent = texts[place];
        input.setAttribute("aria-valuetext", texts[place]);
      };
      return {input, nodes: [input, text], set, place: () => Number(input.value)};
    },
    select: ({texts}, id) => {
      const input = element("select", {id}, texts.map(text => element("option", {textContent: text})));
      return {input, nodes: [input], set: place => (input.selectedIndex = place), place: () => input.selectedIndex};
    },
    checkbox: (_, id) => {
      const input = element("input", {type: "checkbox", id});
      return {input, nodes: [input], set: place => (input.checked = place === 1), place: () => Number(input.checked)};
    },
  };

  const copier = address => {
    const button = element("button", {type: "button", className: "copy-link", textContent: "Copy link"});
    const tell = text => {
      button.textContent = text;
      setTimeout(() => (button.textContent = "Copy link"), 2000);
    };
    button.addEventListener("click", () => {
      history.replaceState(null, "", address());
      // A page opened from a disk may not write to the clipboard; the link then stands in the address bar.
      Promise.resolve(navigator.clipboard?.writeText(location.href)).then(
        () => tell(navigator.clipboard ? "Copied" : "See the address bar"), () => tell("See the address bar"));
    });
    return button;
  };

  // The button that plays and pauses. Where no text asks for a prediction, on the front page, the figure also plays by
  // itself, once, when it is in sight; not where a hand was quicker or the address names a state, and not for those who
  // want less motion.
  const player = (picture, controls, plays, load, go) => {
    const button = element("button", {type: "button"});
    let timer, held;
    let step = 0;
    const pause = () => {
      timer = clearInterval(timer);
      button.textContent = "▶ Play";
    };
    const next = () => (step === plays.length ? pause() : go(plays[step++]));
    const play = async () => {
      held = true;
      button.textContent = "❚❚ Pause";
      const mine = (timer = setInterval(() => {}, 1e6)); // until all pictures are there
      const there = await load().then(() => true, () => false);
      if (timer !== mine) return; // paused by now
      pause();
      if (!there) return;
      if (step === plays.length) step = 0;
      button.textContent = "❚❚ Pause";
      timer = setInterval(next, 200);
    };
    button.addEventListener("click", () => (timer ? pause() : play()));
    const hold = () => ((held = true), pause());
    for (const row of controls) for (const event of ["pointerdown", "input"]) row.addEventListener(event, hold);
    const seen = ([{isIntersecting}], observer) => {
      if (!isIntersecting) return;
      observer.disconnect();
      setTimeout(() => held || play(), 1000);
    };
    const isCalm = location.hash.includes("?") || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const byItself = !isCalm && !document.querySelector(".cell_input");
    if (byItself) new IntersectionObserver(seen, {threshold: 0.5}).observe(picture);
    pause();
    return element("div", {className: "live-control"}, [button]);
  };

  const enliven = node => {
    const {figure, call, note, controls: all, plays} = JSON.parse(node.textContent);
    const still = node.parentElement;
    const [picture, code, sentence] = ["img", "code", "em"].map(name => still.querySelector(name));
    const controls = all.map((control, number) => ({
      ...control,
      ...makers[control.kind](control, `live-${figure.replace("/", "-")}-${number}`),
    }));
    const places = controls.map(control => control.start);
    const said = element("p", {className: "live-said", role: "status"});
    let asked = 0;
    let quiet;

    const pictureAt = ({frames, pictures}, places) => {
      const frame = frames[places.reduce((sum, place, number) => sum * all[number].texts.length + place, 0)];
      const [file, alt, cuts] = pictures[frame];
      const src = new URL(`${figure.split("/")[0]}/${file}`, folder).href;
      if (images[src]?.complete && !images[src].naturalWidth) delete images[src]; // it did not come
      return {image: (images[src] ??= element("img", {src})), src, alt, cuts};
    };

    const show = async () => {
      const number = ++asked;
      const words = controls.map(({call}, number) => call[places[number]]).filter(word => word);
      const between = words.length && !call.endsWith("()") ? ", " : "";
      code.textContent = `${call.slice(0, -1)}${between}${words.join(", ")})`;
      picture.setAttribute("aria-busy", "true");
      try {
        const {image, src, alt, cuts} = pictureAt(await gridOf(figure), places);
        await image.decode(); // the old picture stays until the new one can be shown
        if (number !== asked) return; // the reader is elsewhere by now
        picture.dataset.cuts = cuts; // between its panels, for panels.js
        Object.assign(picture, {src, alt});
        picture.classList.remove("live-lost");
        clearTimeout(quiet); // a screen reader is told where the reader stopped, not every step on the way
        quiet = setTimeout(() => (said.textContent = alt), 600);
      } catch {
        if (number !== asked) return;
        picture.classList.add("live-lost");
        said.textContent = "The picture for these settings could not be loaded.";
      }
      picture.removeAttribute("aria-busy");
    };

    // Whoever reaches for a control will want its other stops, the nearest first.
    const prepare = async number => {
      const grid = await gridOf(figure);
      const from = places[number];
      const others = all[number].texts.map((_, place) => place).sort((a, b) => Math.abs(a - from) - Math.abs(b - from));
      for (const place of others) pictureAt(grid, places.with(number, place));
    };

    const rows = controls.map(({kind, label, input, nodes, set, place, start}, number) => {
      set(start);
      input.addEventListener("input", () => {
        places[number] = place();
        set(place());
        show();
      });
      for (const event of ["pointerenter", "pointerdown", "focus"])
        input.addEventListener(event, () => prepare(number).catch(() => {}));
      const name = element("label", {htmlFor: input.id, textContent: label});
      return element("div", {className: "live-control"}, kind === "checkbox" ? [input, name] : [name, ...nodes]);
    });
    rows.forEach((row, number) => (row.hidden = all[number].texts.length === 1));
    if (plays?.length) {
      const load = async () => {
        const grid = await gridOf(figure);
        await Promise.all(plays.map(places => pictureAt(grid, places).image.decode()));
      };
      const go = setting => {
        setting.forEach((place, number) => controls[number].set((places[number] = place)));
        show();
      };
      rows.push(player(picture, [...rows], plays, load, go));
    }
    const name = figure.split("/")[1];
    const settings = () => controls.map(({keys}, number) => encodeURIComponent(keys[places[number]]));
    picture.before(element("form", {className: "live-controls", autocomplete: "off"}, rows), said);
    // #slope-lab?d_k=64&keys=512 opens the figure with these settings, in sight.
    const open = block => {
      const [to, wanted] = location.hash.slice(1).split("?");
      if (to !== name || !wanted) return;
      const words = wanted.split("&").map(decodeURIComponent);
      controls.forEach(({keys, set}, number) => {
        const place = keys.findIndex(key => words.includes(key));
        if (place >= 0) set((places[number] = place));
      });
      show();
      still.scrollIntoView({block});
    };
    open("center");
    addEventListener("hashchange", () => open("nearest"));
    for (const link of document.querySelectorAll(`a[href^="#${name}?"]`)) // again, when the address stays as it is
      link.addEventListener("click", () => setTimeout(open, 0, "nearest"));
    const copy = copier(() => `#${name}?${settings().join("&")}`);
    if (!sentence) return picture.after(copy); // below no cell that could be run
    const run = document.querySelector("a[href*='lite/lab/index.html']");
    const here = run && `<a href="${run.href}&cell=${name}">Run this cell, after all above it,</a>`;
    sentence.innerHTML = here ? note.replace("Run this cell", here) : note;
    sentence.after(" ", copy);
  };

  document.querySelectorAll("script.live-stops").forEach(enliven);
}
