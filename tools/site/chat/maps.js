// Pictures of attention maps: all heads as small multiples, and one enlarged. A map is T × T bytes, query by key.
"use strict";

const BLUES = Array.from({ length: 256 }, (_, byte) => {
  const [white, blue, dark] = [[255, 255, 255], [0, 103, 165], [0, 38, 77]];
  const [from, to, share] = byte < 128 ? [white, blue, byte / 128] : [blue, dark, (byte - 128) / 127];
  return from.map((channel, i) => Math.round(channel + (to[i] - channel) * share));
});

// One head's map as a picture of T × T dots.
const dots = (maps, number, T) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: T, height: T });
  const context = canvas.getContext("2d");
  const image = context.createImageData(T, T);
  for (let i = 0; i < T * T; i++) image.data.set([...BLUES[maps[number * T * T + i]], 255], 4 * i);
  context.putImageData(image, 0, 0);
  return canvas;
};

const TILE = 32; // pixels from one head to the next
// Layers from left to right, heads from top to bottom. `off` holds numbers of heads: layer · heads + head.
const drawAll = (canvas, { maps, layers, heads, T }, off, chosen) => {
  Object.assign(canvas, { width: layers * TILE, height: heads * TILE });
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = T > TILE - 4;
  context.fillStyle = "#d0d0d0";
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (let number = 0; number < layers * heads; number++) {
    const [x, y] = [TILE * Math.floor(number / heads) + 1, TILE * (number % heads) + 1];
    context.drawImage(dots(maps, number, T), x, y, TILE - 2, TILE - 2);
    if (off.has(number)) line(context, "#c14a00", 3, [x + 2, y + 2, x + TILE - 4, y + TILE - 4]);
    if (number === chosen) {
      Object.assign(context, { strokeStyle: "#c14a00", lineWidth: 3 });
      context.strokeRect(x, y, TILE - 2, TILE - 2);
    }
  }
};

const line = (context, strokeStyle, lineWidth, [x, y, toX, toY]) => {
  Object.assign(context, { strokeStyle, lineWidth });
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
};

const CELL = 19;
const MARGIN = 96; // for the tokens
const drawOne = (canvas, { maps, tokens, T }, number, query) => {
  const size = MARGIN + CELL * T + 2;
  const dense = 2; // dots per pixel of the page: letters stay sharp
  Object.assign(canvas, { width: dense * size, height: dense * size });
  canvas.style.width = `${size}px`;
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, size, size);
  context.imageSmoothingEnabled = false;
  context.drawImage(dots(maps, number, T), MARGIN, MARGIN, CELL * T, CELL * T);
  Object.assign(context, { strokeStyle: "#9a9a9a", lineWidth: 1 });
  context.strokeRect(MARGIN, MARGIN, CELL * T, CELL * T);
  Object.assign(context, { font: "13px system-ui, sans-serif", textBaseline: "middle", textAlign: "right" });
  tokens.forEach((token, i) => {
    const middle = MARGIN + CELL * (i + 0.5);
    context.fillStyle = i === query ? "#c14a00" : "#222";
    context.fillText(shown(token), MARGIN - 6, middle, MARGIN - 10);
    context.save();
    context.translate(middle, MARGIN - 6);
    context.rotate(Math.PI / 2);
    context.fillStyle = "#222";
    context.fillText(shown(token), 0, 0, MARGIN - 10);
    context.restore();
  });
  Object.assign(context, { strokeStyle: "#c14a00", lineWidth: 2 });
  context.strokeRect(MARGIN, MARGIN + CELL * query, CELL * T, CELL);
};

// A token as it is read aloud or drawn: its blank is of no use there, and a line's end has no picture.
const shown = (token) => token.trim() || (token.includes("\n") ? "↵" : "␣");

// The keys with the largest weights of a query, as [key, weight].
const largest = ({ maps, T }, number, query, count = 3) =>
  Array.from({ length: T }, (_, key) => [key, maps[(number * T + query) * T + key] / 255])
    .sort((a, b) => b[1] - a[1])
    .slice(0, count);
