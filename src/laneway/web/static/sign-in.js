// The token of a link stands behind the #, which browsers keep to themselves: it is taken out of the address first of
// all, and then given as if it had been typed.
(function () {
  "use strict";
  var token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  var form = document.getElementById("sign-in");
  form.elements.token.value = token;
  form.submit();
})();
