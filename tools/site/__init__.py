"""The published site: `build` makes the book, `frames` its moving figures, `lite` JupyterLite; `fetch` downloads."""
