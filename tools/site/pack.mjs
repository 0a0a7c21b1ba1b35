// node pack.mjs FOLDER ARCHIVE WABT MODULES NAME...: unpack these of Pyodide's packages in FOLDER, by Pyodide itself, put
// the files of the folder MODULES beside them (a .wat is assembled by WABT, an unpacked package of npm's), make what
// Python would otherwise make in every learner's browser at every start (bytecode; matplotlib's list of fonts, of which
// the one that Pyodide has in its wheel is another version's), and write it all into ARCHIVE, a tar for start.js.
// Python's own modules get their bytecode where they are.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, archive, wabt, modules, ...names] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(folder + "/pyodide.mjs"));
const pyodide = await loadPyodide({ indexURL: folder, packageCacheDir: folder });
const problems = [];
await pyodide.loadPackage(names, { messageCallback: () => {}, errorCallback: (text) => problems.push(text) });
if (problems.length) {
  console.error(problems.join(" "));
  process.exit(1);
}
const packages = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')");
for (const name of fs.readdirSync(modules, { recursive: true })) {
  const file = path.join(modules, name);
  const target = `${packages}/${name.replaceAll(path.sep, "/")}`;
  if (fs.statSync(file).isDirectory()) pyodide.FS.mkdirTree(target);
  else if (!name.endsWith(".wat")) pyodide.FS.writeFile(target, fs.readFileSync(file));
  else pyodide.FS.writeFile(target.replace(/wat$/, "wasm"), await assembled(file));
}
pyodide.runPython(`
    import compileall, importlib.util, pathlib, py_compile, re, sysconfig, tarfile, warnings, zipfile

    if importlib.util.find_spec("matplotlib"):
        import matplotlib.font_manager

    packages = sysconfig.get_path("purelib")
    # At a wrong indent the kernel would never answer again: it has IPython look for tokens where it awaits no error.
    for file in pathlib.Path(packages).glob("IPython/core/inputtransformer2.py"):
        file.write_text(file.read_text().replace("except tokenize.TokenError:", "except (tokenize.TokenError, SyntaxError):"))
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

    library, copy = "/lib/python312.zip", pathlib.Path("/library")
    zipfile.ZipFile(library).extractall(copy)
    beside = {"legacy": True, "stripdir": str(copy), "prependdir": library}  # where an import from a zip looks for it
    compileall.compile_dir(copy, quiet=2, invalidation_mode=unchecked, **beside)
    with zipfile.ZipFile("/library.zip", "w", zipfile.ZIP_DEFLATED) as new:
        for file in sorted(filter(pathlib.Path.is_file, copy.rglob("*"))):
            new.writestr(zipfile.ZipInfo(str(file.relative_to(copy))), file.read_bytes(), zipfile.ZIP_DEFLATED)
`);
fs.writeFileSync(archive, pyodide.FS.readFile("/packages.tar"));
fs.writeFileSync(folder + "/python_stdlib.zip", pyodide.FS.readFile("/library.zip"));

// A library for dlopen: a module that says first, in a section of its own, that it needs no memory and no table.
async function assembled(file) {
  const [once, each = ""] = fs.readFileSync(file, "utf8").split(/^;; -+$/m);
  const kinds = [
    { NUMBER: "f32", LANES: "f32x4", SPLAT: "load32_splat", SIZE: "4", COUNT: "4" },
    { NUMBER: "f64", LANES: "f64x2", SPLAT: "load64_splat", SIZE: "8", COUNT: "2" },
  ];
  const all = kinds.map((kind) => each.replace(/[A-Z]{4,}/g, (word) => kind[word] ?? word)).join("");
  const { parseWat } = await createRequire(import.meta.url)(wabt)();
  const text = `(module (import "env" "memory" (memory 0)) ${once} ${all})`;
  const { buffer } = parseWat(file, text, { simd: true }).toBinary({});
  const name = Buffer.from("\x08dylink.0"), needs = Buffer.from([1, 4, 0, 0, 0, 0]);
  const section = Buffer.concat([Buffer.from([0, name.length + needs.length]), name, needs]);
  return Buffer.concat([buffer.subarray(0, 8), section, buffer.subarray(8)]);
}
