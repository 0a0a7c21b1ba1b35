// A zip archive without compression, from [path, bytes, date] of each file: https://pkware.cachefly.net/webdocs/APPNOTE
const zip = (files) => {
  const table = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
  });
  const checksum = (bytes) => ~bytes.reduce((sum, byte) => table[(sum ^ byte) & 255] ^ (sum >>> 8), -1) >>> 0;
  // Numbers of two or four bytes, the low byte first.
  const record = (...fields) => {
    const view = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
    let at = 0;
    for (const [size, value] of fields) {
      if (size === 2) view.setUint16(at, value, true);
      else view.setUint32(at, value, true);
      at += size;
    }
    return view.buffer;
  };
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [path, bytes, date] of files) {
    const name = new TextEncoder().encode(path);
    const time = (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1);
    const day = ((date.getFullYear() - 1980) << 9) | ((date.getMonth() + 1) << 5) | date.getDate();
    const UTF8 = 0x800;
    const facts = [
      ...[[2, 20], [2, UTF8], [2, 0], [2, time], [2, day]], // version, flags, no compression, date
      ...[[4, checksum(bytes)], [4, bytes.length], [4, bytes.length], [2, name.length], [2, 0]],
    ];
    parts.push(record([4, 0x04034b50], ...facts), name, bytes);
    directory.push(record([4, 0x02014b50], [2, 20], ...facts, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]), name);
    at += 30 + name.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.byteLength, 0);
  const count = files.length;
  const end = record([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, at], [2, 0]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
};
