"""The page that a notebook is: its first output, and the control that opens all folded answers."""

SAYS = "Open all answers on this page"

# JupyterLab draws a cell's text only when it comes into sight, so the script also opens what is drawn later. VS Code
# keeps texts in shadow trees. The book also closes outputs (`details.hide`). Where a script can't reach the texts, as in Colab, no control is offered. Paper can't be
# clicked on, so printing opens every answer, too.
SCRIPT = """
<div class="open-answers"></div>
<script>
(() => {
  const place = [...document.querySelectorAll(".open-answers:empty")].pop();
  const roots = () => [document, ...[...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean)];
  const answers = () => roots().flatMap((root) => [...root.querySelectorAll("details.answer, details.hide")]);
  const open = (state) => answers().forEach((answer) => (answer.open = state));
  addEventListener("beforeprint", () => open(true));
  if (!place || window.google?.colab) return;
  const label = place.appendChild(document.createElement("label"));
  const box = label.appendChild(document.createElement("input"));
  box.type = "checkbox";
  label.append(" SAYS");
  const later = new MutationObserver(() => open(true));
  box.addEventListener("change", () => {
    open(box.checked);
    if (box.checked) later.observe(document.body, { childList: true, subtree: true });
    else later.disconnect();
  });
})();
</script>
""".replace("SAYS", SAYS)


def ready() -> None:
    """Say that the set-up is done, and show the control that opens all answers."""
    from IPython.display import display

    print("Ready.")
    display({"text/html": SCRIPT, "text/plain": ""}, raw=True)
