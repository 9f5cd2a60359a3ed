// A cursor on each chart: under a pointer, and by keyboard as a slider over its points. What it says comes from the server, a line
// for each point: key, x, a y for each line or -, and after a bar the words.
"use strict";

const chosenPoint = new Map(); // keys of points, by chart; a chart without one follows the newest

// cursors gives every chart in an element its cursor.
function cursors(element) {
  for (const plot of element.querySelectorAll(".plot")) cursor(plot);
}

function cursor(plot) {
  const points = plot.dataset.points.split("\n").map((line) => {
    const bar = line.indexOf("|");
    const [key, x, ...ys] = line.slice(0, bar).split(" ");
    return { key: Number(key), x: Number(x), ys, text: line.slice(bar + 1) };
  });
  const svg = plot.querySelector("svg");
  const line = plot.querySelector(".cursor line");
  const dots = [...plot.querySelectorAll(".cursor circle")];
  const readout = document.getElementById("o-" + plot.id.slice(2));
  const title = document.getElementById("h-" + plot.id.slice(2));
  let at = points.length - 1;

  // show moves the cursor to a point; it is drawn where somebody chose it.
  function show(i, drawn) {
    at = Math.max(0, Math.min(points.length - 1, i));
    const point = points[at];
    plot.classList.toggle("at", drawn);
    line.setAttribute("x1", point.x);
    line.setAttribute("x2", point.x);
    dots.forEach((dot, k) => {
      dot.setAttribute("cx", point.x);
      dot.setAttribute("cy", point.ys[k] === "-" ? -99 : point.ys[k]);
    });
    readout.textContent = point.text;
    plot.setAttribute("aria-valuenow", String(at));
    plot.setAttribute("aria-valuetext", point.text);
  }
  function choose(i) {
    show(i, true);
    if (at === points.length - 1) chosenPoint.delete(plot.id);
    else chosenPoint.set(plot.id, points[at].key);
  }

  const name = svg.getAttribute("aria-label"); // how the lines run
  svg.setAttribute("aria-hidden", "true");
  svg.removeAttribute("role");
  svg.removeAttribute("aria-label");
  for (const [key, value] of Object.entries({ role: "slider", tabindex: "0", "aria-label": `Points of ${title.textContent}`, "aria-description": name,
    "aria-orientation": "horizontal", "aria-valuemin": "0", "aria-valuemax": String(points.length - 1) })) plot.setAttribute(key, value);
  const before = chosenPoint.get(plot.id);
  if (before === undefined) show(at, false);
  else show(points.findLastIndex((p) => p.key <= before), true);

  plot.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    choose(at + steps[event.key]);
  });
  function point(event) {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * 440;
    let best = 0;
    points.forEach((p, i) => {
      if (Math.abs(p.x - x) < Math.abs(points[best].x - x)) best = i;
    });
    choose(best);
  }
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("focus", () => show(at, true));
  const leave = () => {
    chosenPoint.delete(plot.id);
    show(points.length - 1, false);
  };
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && document.activeElement !== plot && leave());
  plot.addEventListener("blur", leave);
}
