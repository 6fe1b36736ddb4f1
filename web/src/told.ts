// What the flame graph says in words: of what it is and how much, of one node, of idle waits.

import type { Both } from "./both";
import { find, h, name } from "./dom";
import { duration, percent } from "./format";
import { compared, perSecond } from "./functions";
import { KINDS } from "./picture";
import { isUnrecorded, recorded } from "./recorded";
import { byIdleKind, longer, type Tree } from "./tree";
import type { View } from "./view";

const CHANGES = { same: "in both", more: "▲ more than in the baseline", less: "▼ less than in the baseline (hatched)" };

export function tellNode(tree: Tree, both: Both | null, node: number): void {
  const module = tree.module(node);
  const chance = both?.byChance(...both.of(node)) ? ", which may be chance" : "";
  const told = both
    ? `${compared(...both.of(node))}${chance}, where ${perSecond(both.more[node])} was added and ${perSecond(both.less(node))} went`
    : `${duration(tree.total[node])}, ${percent(tree.total[node] / (tree.total[0] || 1))}${node ? `; itself ${duration(tree.own[node])}` : ""}`;
  find("flame-detail").replaceChildren(
    name(tree.name(node)),
    module ? h("span", { class: "muted" }, " in ", name(module)) : "",
    `: ${told}${node ? ` (${KINDS[tree.kind(node)]})` : ""}`,
  );
}

/** Say what is shown, and what its colours are; returned is what the picture is called. */
export function tellTotal(view: View, tree: Tree, both: Both | null): string {
  const { cpu, flame, range } = view.state;
  const { title } = view.report.flames[flame];
  if (both) legend(CHANGES, "change");
  else legend(Object.fromEntries(Object.entries(KINDS).filter(([kind]) => tree.kinds.has(kind))), "kind");
  const none = !tree.total[0] && isUnrecorded(tree.flame, view.part);
  const all = both ? compared(...both.of(0)) : duration(tree.total[0]);
  const told = `${title}: ${none ? "no stacks were recorded then" : all}`;
  const shift = longer(tree.flame, cpu);
  const step = range && shift ? `, to whole steps of ${duration(view.report.time.bin_ns * 2 ** shift)}` : "";
  const which = range ? ` in the selected range${step}` : "";
  const where = `${cpu === null ? "" : ` on CPU ${cpu}`}${both ? step : which}`;
  const when = recorded(tree.flame, view.part);
  const untold = cpu === null || tree.flame.by_cpu ? "" : ": too many stacks to tell them apart by CPU";
  const alone = view.base && !both ? "; the baseline has no such stacks" : "";
  find("flame-total").textContent = `${told}${none ? "" : where}${when && ` (${when})`}${untold}${alone}`;
  return `${both ? "Difference of two flame graphs" : "Flame graph"}, ${told}`;
}

function legend(kinds: Record<string, string>, style: string): void {
  find("legend").replaceChildren(...Object.entries(kinds).map(([kind, told]) => h("span", { class: `kind ${style}-${kind}` }, told)));
}

/** Say how much of the time is idle waits, shown or not. */
export function tellIdle({ part, report, state }: View): void {
  const ns = byIdleKind(report.flames[state.flame], part, report.idle_kinds.length);
  const all = ns.reduce((sum, one) => sum + one, 0);
  const kinds = [...ns.keys()].filter((kind) => kind && ns[kind]).sort((one, other) => ns[other] - ns[one]);
  const told = kinds.map((kind) => `${report.idle_kinds[kind]} ${duration(ns[kind])}`).join(", ");
  const waits = `${percent((all - ns[0]) / all)} of ${duration(all)}: ${told}.`;
  find("flame-idle").textContent = told && (state.idle ? `Idle waits are ${waits}` : `Hid idle waits, ${waits}`);
}
