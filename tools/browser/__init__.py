"""Drive JupyterLab in headless Chromium (`driver`), and ask an open notebook what it shows (`notebook`)."""
