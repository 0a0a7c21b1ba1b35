// Python for the exercises of the book's pages (run.js): JupyterLite's own, with all packages in place.
const PYODIDE = new URL("../lite/static/pyodide/", location.href).href;
importScripts(`${PYODIDE}start.js`);
const python = self.loadPyodide({indexURL: PYODIDE}).then(pyodide => pyodide.pyimport("book_cells"));
onmessage = ({data: [place, cells]}) =>
  python.then(book => postMessage([place, book.run(cells)])).catch(error => setTimeout(() => { throw error; })); // to onerror
