// Runs before the page is shown, so that it does not flash in the other colours.
"use strict";
{
  const kept = (() => {
    try {
      return localStorage.getItem("rowtide-theme");
    } catch {
      return null;
    }
  })();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
}
