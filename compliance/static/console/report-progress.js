// Keeps the page of an unfinished report up to date: asks for its progress until the report is over.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const parts = [...document.querySelectorAll("[data-progress]")];
  const pages = new Set(parts.map((part) => part.dataset.progress));
  if (pages.size !== 1) return; // a finished report, or a list
  const [url] = pages;
  let pause = 1000;

  const ask = async () => {
    let progress = null;
    try {
      const answer = await fetch(url, { headers: { Accept: "application/json" }, redirect: "error" });
      progress = answer.ok ? await answer.json() : null;
    } catch {
      // The network or the session is away: ask again, less often.
    }
    for (const part of progress ? parts : []) {
      if (part.innerHTML !== progress[part.dataset.part]) part.innerHTML = progress[part.dataset.part];
    }
    if (progress?.is_over) return;
    pause = Math.min(pause * 1.3, 15000);
    setTimeout(ask, pause);
  };
  setTimeout(ask, pause);
});
