// Colours come from the style sheet, so that pictures and page agree in both themes.

import { interpolateInferno, interpolateYlGnBu } from "d3-scale-chromatic";

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

export function color(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${variable}`).trim();
}

export function rgb(text: string): [number, number, number] {
  if (text.startsWith("#")) return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)) as [number, number, number];
  return text.match(/\d+/g)!.slice(0, 3).map(Number) as [number, number, number];
}

/** 256 steps from few to many; told apart by those who see no red or green. A single value stands out already. */
export function heatScale(): [number, number, number][] {
  const dark = isDark();
  return Array.from({ length: 256 }, (_, step) => {
    const share = step / 255;
    return rgb(dark ? interpolateInferno(0.4 + 0.58 * share) : interpolateYlGnBu(0.38 + 0.62 * share));
  });
}

const listeners: (() => void)[] = [];

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

export function setTheme(theme: "dark" | "light"): void {
  try {
    localStorage.setItem("foreshock-theme", theme);
  } catch {
    // A page from file:// may have no storage.
  }
  document.documentElement.dataset.chosen = theme;
  show(theme);
}

function show(theme: "dark" | "light"): void {
  document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (now) => {
  if (!document.documentElement.dataset.chosen) show(now.matches ? "dark" : "light");
});
