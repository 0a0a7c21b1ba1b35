// Where a picture has much less room than it was drawn for, its letters would be too small to read. There its panels
// stand below each other, and what is still too wide is pushed sideways. For a notebook's page and for the book.
(() => {
  if (window.coursePanels) return;
  window.coursePanels = true;
  const LEAST = 0.625; // of its size (letters of 10 pixels): where it would be smaller, it is cut; no panel is smaller
  document.head.appendChild(document.createElement("style")).textContent = `
    .in-panels { overflow-x: auto; }
    .in-panels > :not(img) { position: sticky; left: 0; }
    .in-panels > img {
      display: inline-block !important; vertical-align: top; box-sizing: border-box; padding: 0 !important;
      width: min(100%, var(--wide)); min-width: calc(${LEAST} * var(--wide)); aspect-ratio: var(--wide-to-high);
      object-fit: cover; object-position: var(--from) 0;
    }
    .live-lost ~ .panel { opacity: 0.3; }`;
  const rooms = new WeakMap(); // of a picture's parent, its width: asking the page at each step would cost time

  // The picture itself shows its first panel, and twins of it the others.
  const arrange = (image) => {
    const home = image.parentElement;
    if (home.closest("dialog")) return; // there it is as large as it was drawn
    if (!rooms.has(home)) return rooms.set(home, Infinity), widths.observe(home);
    const [width, height] = ["width", "height"].map((side) => Number(image.getAttribute(side)));
    const narrow = rooms.get(home) < LEAST * width;
    home.classList.toggle("in-panels", narrow);
    const cuts = narrow && image.dataset.cuts ? image.dataset.cuts.split(" ").map(Number) : [];
    const panels = [image, ...home.querySelectorAll(":scope > .panel")];
    while (panels.length > cuts.length + 1) panels.pop().remove();
    while (panels.length < cuts.length + 1) {
      const twin = Object.assign(new Image(), { className: "panel", alt: "", decoding: "sync" });
      twin.addEventListener("click", () => image.click()); // in the book it is enlarged
      panels.at(-1).after(twin);
      panels.push(twin);
    }
    panels.forEach((panel, number) => {
      const [start, end] = [cuts[number - 1] ?? 0, cuts[number] ?? 1];
      const wide = (end - start) * width;
      if (panel.src !== image.src) panel.src = image.src;
      panel.style.setProperty("--wide", `${wide}px`);
      panel.style.setProperty("--wide-to-high", wide / height);
      panel.style.setProperty("--from", `${(100 * start) / (1 - end + start || 1)}%`);
    });
  };
  const pictures = (place) => place.querySelectorAll("img[width][decoding=sync]").forEach(arrange);
  const widths = new ResizeObserver((changes) => {
    for (const { target, contentRect } of changes) {
      if (!contentRect.width || rooms.get(target) === contentRect.width) continue; // hidden; or only its height changed
      rooms.set(target, contentRect.width);
      pictures(target);
    }
  });
  const look = () => pictures(document);
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributeFilter: ["src"] });
  look();
})();
