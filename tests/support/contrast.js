// The contrast of every text of a page, and of what else people have to see: marks of charts and edges of fields.
// As WCAG 2.2 defines it (1.4.3, 1.4.11).
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * (top[3] / 255) + under[i] * (1 - top[3] / 255)).concat(255);
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, layer) => over(layer, under), rgba("Canvas"));
  };
  const ratio = (element, style, kind) => {
    const under = ground(element);
    const ink = over(rgba(style.color), under);
    const [high, low] = [light(ink), light(under)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const found = (high + 0.05) / (low + 0.05);
    return found < least ? `${kind} ${element.tagName}.${element.className} ${found.toFixed(2)} "${element.textContent.slice(0, 40)}"` : null;
  };
  const between = (ink, under) => {
    const [high, low] = [light(over(ink, under)), light(under)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  // A field is seen by its border, a filled button by its ground.
  const edge = (element) => {
    const style = getComputedStyle(element);
    return element.matches(".primary, .main") ? style.backgroundColor : style.borderTopColor;
  };
  const mark = (around, color, element = around) => {
    const found = between(rgba(color), ground(around));
    return found < 3 ? `mark ${element.tagName}.${element.getAttribute("class")} ${found.toFixed(2)}` : null;
  };
  const problems = [];
  let checked = 0;
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || element.closest("svg title")) continue;
    if (element.matches(".chart rect:not(.hit)")) problems.push(mark(element, getComputedStyle(element).fill));
    if (element.matches(".chart path, .brand path")) problems.push(mark(element, getComputedStyle(element).stroke));
    if (element.matches("input, textarea, select, button:not(.quiet)"))
      problems.push(mark(element.parentElement, edge(element), element));
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const isField = element.matches("input, textarea, select");
    if (!isText && !isField) continue;
    checked += 1;
    problems.push(ratio(element, getComputedStyle(element), "text"));
    if (element.matches("[placeholder]")) problems.push(ratio(element, getComputedStyle(element, "::placeholder"), "placeholder"));
  }
  return { checked, problems: problems.filter(Boolean) };
}
