// Requests to the routes of programs. Keys go in a header: the browser sends nothing on its own.

import { credentials, forget, turnOf } from "./keys.js";

/** What the server refused, in words for people. */
export class Refused extends Error {
  constructor(status, error) {
    super(wordsOf(error));
    this.status = status;
    this.reason = error?.details?.reason ?? null;
    this.details = error?.details ?? {};
  }
}

/** There was no answer: nothing is known of what became of a request. */
export class NoAnswer extends Error {
  constructor() {
    super("No answer: is the server still running?");
  }
}

// How far the clock of the server is ahead of ours, in milliseconds.
let ahead = 0;

/** Return the time of the server, in milliseconds. */
export function now() {
  return Date.now() + ahead;
}

/** Send one request as `role` and return the response, whatever its status. Raises `NoAnswer`. */
export async function send(role, path, options = {}) {
  const { body, headers = {}, ...more } = options;
  const how = { cache: "no-store", credentials: "omit", redirect: "error", ...more };
  how.headers = { accept: "application/json", ...headers, ...credentials(role) };
  if (body !== undefined) {
    how.method = "POST";
    how.headers["content-type"] = "application/json";
    how.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), how);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new NoAnswer();
  }
  const told = Date.parse(response.headers.get("date"));
  // The header has whole seconds: a smaller difference says nothing.
  if (told && Math.abs(told - Date.now()) > 2000) ahead = told - Date.now();
  return response;
}

/**
 * Ask as `role` and return the JSON of the answer, read by `parse`.
 *
 * Raises `Refused` or `NoAnswer`; forgets a wrong key.
 */
export async function ask(role, path, { parse = JSON.parse, ...options } = {}) {
  const turn = turnOf(role);
  const response = await send(role, path, options);
  const body = await response
    .text()
    .then((text) => parse(text))
    .catch(() => null);
  if (response.ok) return body;
  const refused = new Refused(response.status, body?.error);
  if (response.status === 401) forget(role, refused.message, turn);
  throw refused;
}

/** Return a path with a query; members without a value are left out. */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

function wordsOf(error) {
  if (!error) return "The server gave an answer that cannot be read.";
  const details = error.details ?? {};
  const found = (details.violations ?? []).map((each) => ` ${each.pointer || "(root)"}: ${each.message}.`);
  return (error.message ?? "") + (details.why ? ` Why: ${details.why}.` : "") + found.join("");
}
