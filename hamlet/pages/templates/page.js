"use strict";
// What all pages share: elements, the tool tip, numbers and times as text. Texts of the data are set as text, never as HTML.

const DATA = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");
const live = document.getElementById("live");

function el(tag, attributes, ...children) {
  const node = ["svg", "g", "path", "line", "rect", "circle", "text", "defs", "marker"].includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// rows: [colour or null, label, value, whether it is the one pointed at]
function showTip(x, y, title, rows, more) {
  tip.replaceChildren(
    el("div", { class: "t" }, title),
    ...rows.map(([colour, label, value, on]) =>
      el("div", { class: on ? "r on" : "r" }, colour ? el("i", { class: "swatch", style: `background:${colour}` }) : null, label, el("b", {}, value))),
    ...(more ? [el("div", { class: "soft" }, more)] : []));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(6, left)}px`;
  tip.style.top = `${Math.max(6, Math.min(y - box.height / 2, innerHeight - box.height - 6))}px`;
}

function hideTip() { tip.hidden = true; }

addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
for (const moved of ["wheel", "touchmove"]) addEventListener(moved, hideTip, { passive: true });

function say(text) { live.textContent = text; }

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const power = (exponent) => "10" + [...String(exponent)].map((digit) => (digit === "-" ? "⁻" : SUPER[digit])).join("");

// A number of the data is a number, or text such as "1.4125e+1505" where a double would not hold it.
function number(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "number") {
    const text = Number.isInteger(value) ? whole.format(value) : Math.abs(value) >= 1e-3 && Math.abs(value) < 1e9 ? short.format(value) : value.toPrecision(4);
    return { log: value > 0 ? Math.log10(value) : null, text, parts: value === 0 ? [0, 0] : parts(value) };
  }
  const [mantissa, exponent] = value.split("e").map(Number);
  return { log: mantissa > 0 ? Math.log10(mantissa) + exponent : null, text: `${mantissa.toFixed(3)}·${power(exponent)}`, parts: [mantissa, exponent] };
}

function parts(value) {
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  return [value / 10 ** exponent, exponent];
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (value) => String(value).padStart(2, "0");

function timeText(ticks, axis) {
  if (!axis.dates) return whole.format(ticks).replaceAll(",", " ") + " " + axis.unit;
  const seconds = ticks / axis.perSecond;
  const date = new Date(Math.floor(seconds * 1000));
  const rest = ((seconds % 1) + 1) % 1;
  return `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())} ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}` +
    (date.getUTCSeconds() || rest ? `:${two(date.getUTCSeconds())}` : "") + (rest > 5e-4 ? rest.toFixed(3).slice(1) : "");
}

// From "2023-01-05 10:00" to "10:15" of the same day, without saying the day twice.
function spanText(from, to, axis) {
  const one = timeText(from, axis), other = timeText(to, axis);
  return axis.dates && one.slice(0, 10) === other.slice(0, 10) ? `${one} – ${other.slice(11)}` : `${one} – ${other}`;
}
