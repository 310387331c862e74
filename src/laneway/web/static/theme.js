// Before the first paint: the theme that was chosen here, else what the system prefers.
(function () {
  "use strict";
  try {
    var chosen = localStorage.getItem("laneway-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch (error) { /* storage is off: the system's choice holds */ }
})();
