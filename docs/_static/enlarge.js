// A tap on a picture of the book, or the button below it, shows it as large as it was drawn. On a phone it is first
// shown whole, turned if it is wide; after another tap it is wider than the window, and the reader pans. A live
// figure's controls come along.
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
  const phone = matchMedia("(pointer: coarse) and (max-width: 600px), (pointer: coarse) and (max-height: 600px)");
  let putBack = () => {};
  let place = 0; // where the page stood
  let step = ""; // "there": one of history's, so that a phone's Back button closes the picture and not the page; or "back"

  const open = (picture, button) => {
    const home = picture.parentElement;
    const [controls, said] = [".live-controls", ".live-said"].map(name => home.querySelector(`:scope > ${name}`));
    const parts = [controls, said, picture].filter(part => part);
    const gaps = parts.map(part => document.createComment(part.className));
    home.style.minHeight = `${home.offsetHeight}px`; // the page behind stays as it is
    parts.forEach((part, number) => part.replaceWith(gaps[number]));
    putBack = () => {
      gaps.forEach((gap, number) => gap.replaceWith(parts[number]));
      home.style.minHeight = "";
      button.focus({preventScroll: true});
    };
    const [width, height] = ["width", "height"].map(side => Number(picture.getAttribute(side)));
    stage.style.setProperty("--width", width);
    stage.style.setProperty("--height", height);
    stage.classList.toggle("whole", phone.matches);
    stage.classList.toggle("wide", width > height);
    stage.append(...parts.filter(part => part !== controls));
    if (controls) bar.prepend(controls);
    place = scrollY;
    dialog.showModal();
    stage.focus(); // the arrow keys pan
    stage.scrollTo(0, 0);
    history.pushState(null, "");
    step = "there";
  };

  // Every way out takes this step, and the picture closes when it is taken. Only then can the page be put where it stood:
  // with the step, a browser puts it where it remembers it, and that may be a place of a moment before.
  const leave = () => {
    if (step === "there") {
      step = "back";
      history.back();
    }
  };
  const closed = () => {
    putBack();
    putBack = () => {};
    scrollTo({top: place, behavior: "instant"});
  };
  window.addEventListener("popstate", () => {
    if (step)
      setTimeout(() => {
        dialog.close();
        closed(); // at once, and not with the event, which comes later
      });
    step = "";
  });
  dialog.addEventListener("cancel", event => {
    event.preventDefault();
    leave();
  });
  dialog.addEventListener("close", () => {
    if (step !== "there" || dialog.open) return;
    closed(); // the browser closed it without asking
    leave();
  });
  dialog.addEventListener("keydown", event => event.stopPropagation()); // else the theme takes Escape for its search
  close.addEventListener("click", leave);
  stage.addEventListener("click", () => {
    if (stage.classList.contains("whole")) stage.classList.remove("whole");
    else leave();
  });

  for (const picture of document.querySelectorAll("main .cell_output img:not(.panel)")) {
    const button = element("button", {type: "button", className: "enlarge", textContent: "Enlarge"});
    button.setAttribute("aria-haspopup", "dialog");
    picture.after(button);
    for (const node of [button, picture])
      node.addEventListener("click", () => dialog.open || open(picture, button));
  }
  document.querySelector("main .bd-article")?.append(dialog); // there, pictures look as they do on the page
}
