// A tap on a picture of the book, or the button below it, shows it as large as it was drawn. On a phone it is wider than
// the window then, and the reader pans. A live figure's controls come along.
"use strict";
{
  const element = (name, properties = {}, children = []) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };
  const close = element("button", {type: "button", className: "enlarged-close", textContent: "Close"});
  const stage = element("div", {className: "enlarged-stage", role: "region", ariaLabel: "Picture", tabIndex: 0});
  const bar = element("div", {className: "enlarged-bar"}, [close]);
  const dialog = element("dialog", {className: "enlarged", ariaLabel: "Enlarged picture"}, [stage, bar]);
  let putBack = () => {};
  let inHistory = false; // one step, so that a phone's Back button closes the picture and not the page
  let goingBack = false; // over this step, because the picture was closed in another way

  const open = (picture, button) => {
    const place = picture.parentElement;
    const [controls, said] = [".live-controls", ".live-said"].map(name => place.querySelector(`:scope > ${name}`));
    const parts = [controls, said, picture].filter(part => part);
    const gaps = parts.map(part => document.createComment(part.className));
    place.style.minHeight = `${place.offsetHeight}px`; // the page behind stays as it is
    parts.forEach((part, number) => part.replaceWith(gaps[number]));
    putBack = () => {
      gaps.forEach((gap, number) => gap.replaceWith(parts[number]));
      place.style.minHeight = "";
      button.focus({preventScroll: true});
    };
    for (const side of ["width", "height"]) stage.style.setProperty(`--${side}`, picture.getAttribute(side));
    stage.append(...parts.filter(part => part !== controls));
    if (controls) bar.prepend(controls);
    dialog.showModal();
    stage.focus(); // the arrow keys pan
    stage.scrollTo(0, 0);
    history.scrollRestoration = "manual"; // a busy browser would put back where the page was a moment before
    history.pushState(null, "");
    history.scrollRestoration = "auto";
    inHistory = true;
  };

  dialog.addEventListener("close", () => {
    putBack();
    goingBack = inHistory;
    inHistory = false;
    if (goingBack) history.back();
  });
  window.addEventListener("popstate", () => {
    if (!goingBack) {
      inHistory = false;
      dialog.close();
    }
    goingBack = false;
    setTimeout(() => (history.scrollRestoration = "auto")); // after this step: whoever leaves the page comes back to here
  });
  dialog.addEventListener("keydown", event => event.stopPropagation()); // else the theme takes Escape for its search
  for (const node of [close, stage]) node.addEventListener("click", () => dialog.close());

  for (const picture of document.querySelectorAll("main .cell_output img")) {
    const button = element("button", {type: "button", className: "enlarge", textContent: "Enlarge"});
    button.setAttribute("aria-haspopup", "dialog");
    picture.after(button);
    for (const node of [button, picture])
      node.addEventListener("click", () => dialog.open || open(picture, button));
  }
  document.querySelector("main .bd-article")?.append(dialog); // there, pictures look as they do on the page
}
