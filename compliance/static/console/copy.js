// A button with `data-copies` (an element's id) copies that element's text; it stays hidden where nothing can.
"use strict";

for (const button of document.querySelectorAll("[data-copies]")) {
  const source = document.getElementById(button.dataset.copies);
  const status = document.getElementById(button.getAttribute("aria-describedby"));
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value);
      status.textContent = "Copied.";
    } catch {
      // Only pages over HTTPS and of this machine may use the clipboard.
      source.focus();
      source.select();
      status.textContent = "Selected: press Ctrl+C or Cmd+C to copy.";
    }
  });
}
