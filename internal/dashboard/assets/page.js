// The live part of the page: it replaces what the server sends, and knows nothing of its meaning. Without it the page is
// loaded again every few seconds.
"use strict";

const root = document.documentElement;

// What a reader has chosen, kept where storage is allowed.
function remembered(what) {
  try {
    return localStorage.getItem("panlearn-" + what);
  } catch {
    return null;
  }
}
function remember(what, value) {
  try {
    localStorage.setItem("panlearn-" + what, value);
  } catch {
    // it lasts as long as the page
  }
}

// Colours: those of the system until somebody chooses.
const system = matchMedia("(prefers-color-scheme: dark)");
function dark() {
  const choice = remembered("theme") ?? root.dataset.theme;
  return choice ? choice === "dark" : system.matches;
}
if (remembered("theme")) root.dataset.theme = remembered("theme");

addEventListener("DOMContentLoaded", () => {
  const theme = document.getElementById("theme");
  const pause = document.getElementById("pause");
  const link = document.getElementById("link");

  const showTheme = () => theme.setAttribute("aria-pressed", String(dark()));
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember("theme", root.dataset.theme);
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();
  theme.hidden = pause.hidden = false;

  // replace fills an element and keeps what the reader has opened, where they are and how far they have scrolled.
  function replace(id, html) {
    const element = document.getElementById(id);
    if (!element) return;
    const open = [...element.querySelectorAll("details[open]")].map((d) => d.id);
    const scrolled = [...element.querySelectorAll(".scroll")].map((d) => [d.id, d.scrollTop, d.scrollLeft]);
    const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
    element.innerHTML = html;
    for (const d of open) document.getElementById(d)?.setAttribute("open", "");
    for (const [d, top, left] of scrolled) document.getElementById(d)?.scrollTo(left, top);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    cursors(element);
  }

  let waiting = {}; // parts that came during a pause
  let title = document.title;
  function show() {
    for (const [id, html] of Object.entries(waiting)) {
      if (document.activeElement.matches?.(`#${id} .plot`)) continue; // somebody reads this curve, point by point
      delete waiting[id];
      replace(id, html);
    }
    document.title = title;
  }
  addEventListener("focusout", () => setTimeout(() => paused() || show()));
  const paused = () => pause.getAttribute("aria-pressed") === "true";
  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(!paused()));
    if (!paused()) show();
  });

  // The axis of the curves: that of the address, until somebody chooses.
  const axes = [...document.querySelectorAll(".axes a")];
  let by = remembered("by") ?? new URLSearchParams(location.search).get("by") ?? "rounds";
  function showAxis() {
    for (const a of axes) {
      if (a.id === `by-${by}`) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    }
  }
  for (const a of axes) {
    a.addEventListener("click", (event) => {
      event.preventDefault();
      by = a.id.slice(3);
      remember("by", by);
      showAxis();
      source.close();
      connect();
    });
  }
  showAxis();
  cursors(document);

  let source;
  function say(state, text) {
    root.dataset.link = state;
    if (link.textContent !== text) link.textContent = text;
  }
  function connect() {
    source = new EventSource(`events?by=${by}`);
    source.onmessage = (event) => {
      const update = JSON.parse(event.data);
      if (update.build !== root.dataset.build) return location.reload(); // another program answers now
      say("live", "Live.");
      title = update.title;
      Object.assign(waiting, update.parts);
      if (!paused()) show();
    };
    source.onerror = () => {
      say("lost", "No connection to the learner: this is how it was. Trying again.");
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    };
  }
  connect();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });
});
