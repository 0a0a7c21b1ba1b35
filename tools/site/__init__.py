"""The published site: `build` makes the book, `lite` JupyterLite, out of what `fetch` brings."""
