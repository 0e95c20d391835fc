// A select with `data-presets` (names to values, as JSON) ticks the boxes of the field named in `data-ticks`.
"use strict";

document.addEventListener("change", (event) => {
  const select = event.target;
  if (!select.dataset || !select.dataset.presets) {
    return;
  }
  const values = JSON.parse(select.dataset.presets)[select.value];
  if (values) {
    for (const box of select.form.querySelectorAll(`input[type=checkbox][name="${select.dataset.ticks}"]`)) {
      box.checked = values.includes(box.value);
    }
  }
});
