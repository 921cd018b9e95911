// JSON whose numbers stay as they were written: a double holds no whole number beyond 2^53 for certain.

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/**
 * Parse JSON. A number that a double would change becomes what `JSON.stringify` writes as it was.
 *
 * Browsers that cannot keep the text of a number round it, as `JSON.parse` does.
 */
export function parseExact(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_name, value, context) =>
    typeof value === "number" && isChanged(context.source, value) ? JSON.rawJSON(context.source) : value,
  );
}

/** Return whether a parsed value is a number, kept as its text or not. */
export function isNumber(value) {
  return typeof value === "number" || Boolean(JSON.isRawJSON?.(value));
}

/** Return whether a double is a different number than its source. */
export function isChanged(source, number) {
  return decimalOf(source) !== decimalOf(String(number));
}

// Every way to write a number, such as 1.50, 1.5 and 15e-1, has one text here.
function decimalOf(text) {
  const [, sign, whole, fraction = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  if (whole === undefined) return null; // infinite
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (!significant) return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
