// What pages do by themselves: the theme, how long ago times were, and parts that stay up to date. Everything can be
// read, and every form sent, without it.
"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const kept = () => { try { return localStorage.getItem("sallyport-theme"); } catch { return null; } };
  const apply = (theme) => { if (theme === "light" || theme === "dark") root.dataset.theme = theme; else delete root.dataset.theme; };
  apply(kept());

  const label = (theme) => ({ auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" })[theme];

  function themeSwitch() {
    const button = document.getElementById("theme");
    let theme = themes.includes(kept()) ? kept() : "auto";
    button.textContent = label(theme);
    button.hidden = false;
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try { localStorage.setItem("sallyport-theme", theme); } catch { /* it lasts as long as the page */ }
      apply(theme);
      button.textContent = label(theme);
    });
  }

  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  function ago(stamp) {
    const seconds = Math.round((Date.now() - Date.parse(stamp)) / 1000);
    if (Math.abs(seconds) < 2) return "now";
    const [unit, length] = units.find(([, n]) => Math.abs(seconds) >= n);
    const words = Math.floor(Math.abs(seconds) / length) + " " + unit;
    return seconds < 0 ? "in " + words : words + " ago";
  }
  function times(within) {
    for (const time of within.querySelectorAll("time[datetime]")) {
      const text = ago(time.dateTime);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  // A part is not changed under the hands of somebody who writes in it, nor asked for by a page that nobody sees.
  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  const open = new Set();

  document.addEventListener("DOMContentLoaded", () => {
    themeSwitch();
    times(document);
    const here = document.querySelector(".side [aria-current]");
    if (here) { const side = here.closest(".side"); side.scrollLeft = here.offsetLeft - (side.clientWidth - here.clientWidth) / 2; }
    setInterval(() => { if (!document.hidden) times(document); }, 1000);
    const lost = document.getElementById("lost");
    const body = document.body;
    const isPart = (event) => event.target.classList && event.target.classList.contains("live");
    body.addEventListener("htmx:beforeRequest", (event) => {
      if (isPart(event) && (document.hidden || busy(event.target))) event.preventDefault();
    });
    body.addEventListener("htmx:beforeSwap", (event) => {
      if (!isPart(event)) return;
      if (busy(event.target)) { event.detail.shouldSwap = false; return; }
      open.clear();
      for (const d of event.target.querySelectorAll("details[open][id]")) open.add(d.id);
    });
    body.addEventListener("htmx:afterSwap", () => {
      for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
      open.clear();
      times(document);
    });
    for (const wrong of ["htmx:sendError", "htmx:timeout"]) body.addEventListener(wrong, () => { lost.hidden = false; });
    body.addEventListener("htmx:afterRequest", (event) => { if (event.detail.xhr && event.detail.xhr.status > 0) lost.hidden = true; });
  });
})();
