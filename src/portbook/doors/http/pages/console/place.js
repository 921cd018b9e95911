// Where the page is: `#/view/rest?filters`. Every state that somebody may want to come back to is an address.

/** Return the view, the rest of the path and the query of an address. */
export function placeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, ...rest] = path.split("/");
  return { view, rest: decoded(rest.join("/")), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Return the address of a view. */
export function hrefOf(view, rest = "", query = {}) {
  const given = Object.entries(query).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  const asked = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${view}${rest ? `/${encodeURIComponent(rest)}` : ""}${asked}`;
}

/** Return the address of the calls that match filters, with one of them opened. */
export function callsHref(filters, id = "") {
  return hrefOf("calls", id, filters);
}

/** Change the address without a new step to go back to, and without showing the view anew. */
export function replacePlace(href) {
  history.replaceState(null, "", href);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
