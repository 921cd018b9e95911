// Times and amounts in words.

import { h } from "./dom.js";
import { now } from "./server.js";

const UNITS = [
  [86_400_000, 2, "day"],
  [3_600_000, 2, "h"],
  [60_000, 1.5, "min"],
  [1000, 0, "s"],
];

/** Return a span of time in one unit, such as `14 min`. */
export function span(ms) {
  const length = Math.max(0, ms);
  const [unit, , word] = UNITS.find(([size, least]) => length >= size * least) ?? UNITS.at(-1);
  const count = Math.round(length / unit);
  return `${count} ${word === "day" && count !== 1 ? "days" : word}`;
}

/** Return how long ago a time was. */
export function ago(time) {
  return `${span(now() - Date.parse(time))} ago`;
}

/** Return when a time will be. */
export function ahead(time) {
  const rest = Date.parse(time) - now();
  return rest <= 0 ? "expired" : `in ${span(rest)}`;
}

/** Make an element with a time of day, with its date where it is not today. The whole time is its title. */
export function clock(time) {
  const moment = new Date(time);
  const isToday = moment.toDateString() === new Date(now()).toDateString();
  const day = isToday ? "" : moment.toLocaleDateString(undefined, { month: "short", day: "numeric" }) + " ";
  const hour = moment.toLocaleTimeString(undefined, { hour12: false });
  return h("time", { datetime: time, title: time }, day + hour);
}

/** Return a latency with as many digits as matter. */
export function latency(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 100 ? `${Math.round(ms)} ms` : `${ms.toFixed(ms >= 10 ? 1 : 2)} ms`;
}

/** Return a count with separators. */
export function count(number) {
  return number.toLocaleString("en");
}

/** Return a count with its noun: `1 call`, `2 calls`. */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
