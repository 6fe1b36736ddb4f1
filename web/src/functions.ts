// Functions by their own time, or by how much it changed: what the flame graph shows, as a table.

import type { Both } from "./both";
import { h, name, table } from "./dom";
import { change, duration, percent, sign } from "./format";
import { literal, sought } from "./search";
import type { Tree } from "./tree";
import type { View } from "./view";

const TOP = 40;

export function functions(view: View, tree: Tree): HTMLElement {
  const all = tree.total[0] || 1;
  const ranked = wanted(view, tree, tree.functions()).sort((one, other) => other.own - one.own || other.total - one.total);
  const told = ranked.slice(0, TOP).map(({ at, own, total }) => [
    ...called(view, tree, at),
    duration(own),
    percent(own / all),
    duration(total),
    percent(total / all),
  ]);
  const [caption, what] = tree.flame.probe ? ["Functions by their own time", "function"] : ["By own time", "what"];
  return table(caption, [what, "module", "itself", "share", tree.flame.probe ? "with callees" : "with what is inside", "share"], told, [2, 3, 4, 5]);
}

/** Of a difference: what changed most first, whether it grew or went; what may be chance last, in brackets. */
export function changedFunctions(view: View, both: Both): HTMLElement {
  const size = ([before, now]: [number, number]) => Math.abs(now - before) - (both.byChance(before, now) ? 1e18 : 0);
  const found = wanted(view, both.tree, both.functions());
  const ranked = found.sort((one, other) => size(other.own) - size(one.own) || size(other.total) - size(one.total));
  const told = ranked.slice(0, TOP).map(({ at, own, total }) => [
    ...called(view, both.tree, at),
    ...[own, total].flatMap(([before, now]) => {
      const changed = difference(before, now);
      return [perSecond(now), perSecond(before), changed !== "=" && both.byChance(before, now) ? `(${changed})` : changed];
    }),
  ]);
  const heads = ["function", "module", "itself", "baseline", "change", "with callees", "baseline", "change"];
  return table("Functions whose own time changed most, per second; in brackets what may be chance: too few samples", heads, told, [2, 3, 4, 5, 6, 7]);
}

export const perSecond = (ns: number) => `${duration(ns)}/s`;
export const difference = (before: number, now: number) => [sign(before, now), change(before, now)].join(" ").trim();
export const compared = (before: number, now: number) => `${perSecond(now)}, ${perSecond(before)} in the baseline (${difference(before, now)})`;

/** Those that are searched for. */
function wanted<T extends { at: number }>(view: View, tree: Tree, found: T[]): T[] {
  const { search: text } = view.state;
  const { matching } = sought(text, tree.flame);
  return text ? found.filter(({ at }) => matching[at]) : found;
}

export function called(view: View, { flame }: Tree, at: number): HTMLElement[] {
  const [text, , module] = flame.names[at];
  const seek = () => view.set({ search: `^${literal(text)}$` });
  return [h("button", { type: "button", class: "link", click: seek }, name(text)), name(flame.modules[module])];
}
