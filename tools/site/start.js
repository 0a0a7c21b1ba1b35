// What a page's kernel loads in place of pyodide.js: Pyodide with all packages in place. lite.py puts it beside Pyodide.
//
// Of the processor's time from a kernel's start to the first cell, 38 wheels that Python unpacked one by one took a
// quarter, and Python's compiling of what it imported more; and for each import the page was asked, by way of its
// service worker, whether the module lies beside the notebook. What is left: one archive with bytecode in it, unpacked
// by the browser, and the notebook's folder searched last.
self.loadPyodide = async (options) => {
  if (self.early) return self.early; // see early.js
  const archive = files(options.indexURL + "packages.tar.gz"); // meanwhile Pyodide itself is fetched and compiled
  archive.catch(() => {}); // it is awaited below
  importScripts(options.indexURL + "pyodide.js"); // puts its own loadPyodide in place of this one
  const pyodide = await self.loadPyodide({ ...options, packages: [] });
  unpack(await archive, pyodide.FS);
  pyodide.runPython("import sys; sys.path.remove(''); sys.path.append('')");
  pyodide.runPython("import fast_products; fast_products.install()");
  return pyodide;
};

async function files(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  const buffer = await answer.arrayBuffer();
  // Some servers declare the archive as compressed; then the browser has undone that by now.
  const magic = new Uint8Array(buffer, 0, 2);
  if (magic[0] !== 0x1f || magic[1] !== 0x8b) return new Uint8Array(buffer);
  const stream = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// ustar: a header of 512 bytes, then the file, filled up to 512 bytes. Python's files are views of the archive.
function unpack(archive, FS) {
  const decoder = new TextDecoder();
  const text = (start, length) => decoder.decode(archive.subarray(start, start + length)).replace(/\0.*/s, "");
  for (let at = 0; archive[at]; ) {
    const prefix = text(at + 345, 155);
    const path = "/" + (prefix && prefix + "/") + text(at, 100);
    const size = parseInt(text(at + 124, 12), 8);
    if (text(at + 156, 1) === "5") FS.mkdirTree(path);
    else FS.writeFile(path, archive.subarray(at + 512, at + 512 + size), { canOwn: true });
    at += 512 + 512 * Math.ceil(size / 512);
  }
}
