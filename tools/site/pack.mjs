// node pack.mjs FOLDER ARCHIVE NAME...: unpack these of Pyodide's packages in FOLDER, by Pyodide itself, make what
// Python would otherwise make in every learner's browser at every start (bytecode; matplotlib's list of fonts, of which
// the one that Pyodide has in its wheel is another version's), and write it all into ARCHIVE, a tar for start.js.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, archive, ...names] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(folder + "/pyodide.mjs"));
const pyodide = await loadPyodide({ indexURL: folder, packageCacheDir: folder });
const problems = [];
await pyodide.loadPackage(names, { messageCallback: () => {}, errorCallback: (text) => problems.push(text) });
if (problems.length) {
  console.error(problems.join(" "));
  process.exit(1);
}
pyodide.runPython(`
    import compileall, py_compile, re, sysconfig, tarfile, warnings
    import matplotlib.font_manager

    packages = sysconfig.get_path("purelib")
    # Never imported here: nothing that draws, displays or completes needs them.
    left_out = re.compile(r"/(tests?|django-stubs|sample_data|f2py|[^/]*[.]data|widgetsnbextension|jupyterlab_widgets)$")
    # Imported by few or none: these are compiled in the browser, if at all.
    rare = re.compile(r"/(pygments/(lexers|styles)|jedi/third_party|mpl_toolkits|IPython/(sphinxext|external))/|/tests?/")

    def entry(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return None if left_out.search(info.name) else info

    warnings.simplefilter("ignore")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # nothing here changes: no file's date is to be asked
    compileall.compile_dir(packages, quiet=2, rx=rare, invalidation_mode=unchecked)
    with tarfile.open("/packages.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(packages, filter=entry)
`);
fs.writeFileSync(archive, pyodide.FS.readFile("/packages.tar"));
