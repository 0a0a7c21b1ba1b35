// The worker of a page's first kernel. lite_page.js starts it while JupyterLab loads; lite.py puts it beside the kernel's
// own worker, because that looks for its parts beside the script that it runs in.
//
// The two together take two cores at once, and Python is ready one to two seconds sooner.
onmessage = ({ data }) => {
  onmessage = null;
  importScripts(data); // the kernel's own, which takes the messages from here on
};
const PYODIDE = new URL("../../../../static/pyodide/", location.href).href;
importScripts(`${PYODIDE}start.js`);
self.early = self.loadPyodide({ indexURL: PYODIDE });
self.early.then((pyodide) => pyodide.runPython("import IPython, numpy")).catch(() => {}); // the kernel says what failed
