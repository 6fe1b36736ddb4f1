// Who calls a function that was found, and what it calls itself: in the flame graph it may stand in a hundred places.

import type { Both } from "./both";
import { table } from "./dom";
import { duration, percent } from "./format";
import { called, difference, perSecond } from "./functions";
import type { Found, Tree } from "./tree";
import type { View } from "./view";

const MOST = 40;

/** Two tables if what was found is one function, none otherwise; what calls itself counts once. */
export function callers(view: View, tree: Tree, { matches, outer }: Found, both: Both | null): HTMLElement[] {
  const { nodes, parents, names } = tree.flame;
  if (new Set([...matches].map((node) => nodes[node])).size !== 1) return [];
  const weights = both ? both.totals : [tree.total];
  const inside = [...parents.keys()].filter((node) => node && matches.has(parents[node]) && !matches.has(node));
  const sums = (found: number[], name: (node: number) => number) => {
    const by = new Map<number, number[]>();
    for (const node of found) {
      const at = name(node);
      by.set(at, weights.map((one, side) => one[node] + (by.get(at)?.[side] ?? 0)));
    }
    return [...by].filter(([, told]) => Math.max(...told)).sort(([, one], [, other]) => Math.max(...other) - Math.max(...one));
  };
  const all = outer.reduce((sum, node) => sum + tree.total[node], 0) || 1;
  const cells = ([before, now]: number[]) =>
    both ? [perSecond(now), perSecond(before), difference(before, now)] : [duration(before), percent(before / all)];
  const heads = both ? ["time", "baseline", "change"] : ["time", "share"];
  const told = (caption: string, rows: [number, number[]][]) =>
    rows.length
      ? [table(caption, ["function", "module", ...heads], rows.slice(0, MOST).map(([at, sum]) => [...called(view, tree, at), ...cells(sum)]), [2, 3, 4])]
      : [];
  const [[name]] = [...matches].map((node) => names[nodes[node]]);
  return [
    ...told(`Callers of ${name}`, sums(outer.filter((node) => parents[node]), (node) => nodes[parents[node]])),
    ...told(`Called by ${name}`, sums(inside, (node) => nodes[node])),
  ];
}
