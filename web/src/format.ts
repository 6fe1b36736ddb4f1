// Numbers as tracer/units.py writes them.

const GROUP = "\u202f";

export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, GROUP);
}

const three = (value: number) => (value > 0 && value < 0.01 ? "<0.01" : String(Number(value.toPrecision(3))));

export function duration(ns: number): string {
  if (Number.isNaN(ns)) return "–";
  if (!Number.isFinite(ns) || ns > 1e18) return "> 128 s";
  for (const [limit, scale, unit] of [
    [1e3, 1, "ns"],
    [1e6, 1e3, "µs"],
    [1e9, 1e6, "ms"],
    [128.5e9, 1e9, "s"],
  ] as const)
    if (Number(ns.toPrecision(3)) < limit) return `${three(ns / scale)} ${unit}`;
  const seconds = Math.round(ns / 1e9);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  const hours = Math.floor(seconds / 3600);
  return hours < 48 ? `${hours} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export const atMost = (ns: number) => (Number.isFinite(ns) ? `≤ ${duration(ns)}` : duration(ns));

export function percent(share: number): string {
  if (Number.isNaN(share)) return "–";
  const value = share * 100;
  if (value > 0 && value < 0.01) return "<0.01 %";
  if (value > 99 && value < 100) return `${Math.floor(value * 10) / 10} %`;
  return value >= 10 ? `${value.toFixed(0)} %` : `${Number(value.toPrecision(2))} %`;
}

export function rate(perSecond: number): string {
  if (Number.isNaN(perSecond)) return "–";
  for (const [limit, scale, unit] of [
    [1e3, 1, "/s"],
    [1e6, 1e3, " k/s"],
    [1e9, 1e6, " M/s"],
  ] as const)
    if (Number(perSecond.toPrecision(3)) < limit) return three(perSecond / scale) + unit;
  return `${three(perSecond / 1e9)} G/s`;
}

/** Seconds of the wall clock, or since the start where that isn't known, as UTC says them. */
export function clock(seconds: number, known: boolean, digits = 0): string {
  if (!known) return `${seconds.toFixed(digits)} s`;
  const text = new Date(Math.round(seconds * 1000)).toISOString();
  return digits ? text.slice(11, 12 + 8 + digits) : text.slice(11, 19);
}

/** Digits of a second that tell steps of so many seconds apart, and where in one a moment lies: a tenth of a step. */
export const digitsOf = (step: number) => Math.min(3, Math.max(0, 1 - Math.floor(Math.log10(step) + 1e-9)));

/** Digits behind the point that multiples of a step have, at most three. */
export const decimals = (step: number) => [0, 1, 2].find((digits) => Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) < 1e-6) ?? 3;

/** What became of a number, in a word: "+12 %", "×3", "÷28", "new", "gone"; what rounds away is no change. */
export function change(before: number, now: number): string {
  if (Number.isNaN(before) || Number.isNaN(now)) return "–";
  if (before === now) return "=";
  if (!before) return "new";
  if (!now) return "gone";
  const ratio = now / before;
  if (ratio >= 2) return `×${factor(ratio)}`;
  if (ratio <= 0.5) return `÷${factor(before / now)}`;
  const more = Math.abs(ratio - 1) * 100;
  const digits = more >= 10 ? more.toFixed(0) : String(Math.round(more * 10) / 10);
  return digits === "0" ? "=" : `${ratio > 1 ? "+" : "−"}${digits} %`;
}

const factor = (ratio: number) => (Number(ratio.toPrecision(3)) <= 999 ? three(ratio) : ">999");

/** The way a number went, for those who see no colour; "" where it did not. */
export const sign = (before: number, now: number) => (["=", "–"].includes(change(before, now)) ? "" : now > before ? "▲" : "▼");
