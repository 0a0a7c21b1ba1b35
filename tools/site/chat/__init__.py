"""The page "Chat with it, in this tab": a published model in the reader's browser, computed by the course's library.

- `make`: writes the page, Pyodide with a small archive, and the model in parts that a browser keeps
- `index.html`, `chat.css`, `chat.js`, `heads.js`, `maps.js`: the page
- `model.js`: how the model gets there; `worker.js`: what runs beside the page, with Python in it
- `conversation.py`, `own_attention.py`: the Python that runs there, beside the library
- `model_of_site.py`: the same file in JupyterLite, for notebook 09
- `packed_products.py`, `packed_products.wat`: products with weights that stay packed, by WebAssembly's SIMD
"""
