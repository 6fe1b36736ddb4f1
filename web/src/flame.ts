// The flame graph of the selected range, on a canvas: 50,000 nodes are one picture, and the keyboard walks through them.

import { Both } from "./both";
import { onTheme } from "./colors";
import { find, h, name } from "./dom";
import { duration, percent } from "./format";
import { changedFunctions, compared, functions, perSecond } from "./functions";
import { KINDS, Picture } from "./picture";
import { longer, pattern, Tree } from "./tree";
import type { View } from "./view";

const CHANGES = { same: "in both", more: "▲ more than in the baseline", less: "▼ less than in the baseline (hatched)" };

export function flame(view: View): void {
  const { report } = view;
  if (!report.flames.length) {
    find("flame-panel").replaceChildren(
      h("p", {}, "No stacks were recorded: foreshock record --deep takes them, on and off the CPU."),
    );
    return;
  }
  find("no-stacks").hidden = report.flames.some((one) => one.probe);
  const trees = report.flames.map((one) => new Tree(one));
  const canvas = find("flame") as HTMLCanvasElement;
  const picture = new Picture(canvas);
  const search = find("search") as HTMLInputElement;
  const flip = find("flip") as HTMLInputElement;
  let tree = trees[0];
  let focus = 0;
  let cursor = 0;
  const only = find("only-changes") as HTMLInputElement;
  const pairs = new Map<string, Both>();
  let both: Both | null = null;
  let found: { matches: Set<number>; outer: number[] } | null = null;

  const tabs = report.flames.map((one, place) =>
    h("button", { type: "button", role: "tab", "aria-controls": "flame-panel", click: () => view.set({ flame: place }) }, one.title),
  );
  find("flame-tabs").append(...tabs);
  const legend = (kinds: Record<string, string>, style: string) =>
    find("legend").replaceChildren(...Object.entries(kinds).map(([kind, told]) => h("span", { class: `kind ${style}-${kind}` }, told)));

  function draw(): void {
    picture.draw(tree, { focus, cursor, matches: found?.matches ?? null, upwards: flip.checked, both });
  }

  function tell(node: number): void {
    const all = tree.total[0];
    const module = tree.module(node);
    const chance = both?.byChance(...both.of(node)) ? ", which may be chance" : "";
    const told = both
      ? `${compared(...both.of(node))}${chance}, where ${perSecond(both.more[node])} was added and ${perSecond(both.less(node))} went`
      : `${duration(tree.total[node])}, ${percent(tree.total[node] / all)}; itself ${duration(tree.own[node])}`;
    find("flame-detail").replaceChildren(
      name(tree.name(node)),
      module ? h("span", { class: "muted" }, " in ", name(module)) : "",
      `: ${told} (${KINDS[tree.kind(node)]})`,
    );
  }

  function zoom(node: number): void {
    focus = cursor = node;
    find("crumbs").replaceChildren(
      ...tree.path(node).map((one) =>
        h("button", { type: "button", "aria-current": one === node ? "location" : false, click: () => zoom(one) }, tree.name(one)),
      ),
    );
    tell(node);
    draw();
  }

  function seek(): void {
    const { search: text } = view.state;
    found = text ? tree.search(pattern(text)) : null;
    find("matched").textContent = found ? `${matched(found.outer)} matched, ${found.matches.size} frames` : "";
  }

  function matched(outer: number[]): string {
    const sum = (totals: Float64Array) => outer.reduce((all, node) => all + totals[node], 0);
    return both ? compared(sum(both.totals[0]), sum(both.totals[1])) : percent(sum(tree.total) / (tree.total[0] || NaN));
  }

  function step(way: number): void {
    if (!found?.matches.size) return;
    const matches = [...found.matches].sort((one, other) => tree.start[one] - tree.start[other] || one - other);
    const at = matches.indexOf(cursor);
    const next = matches[(at + way + matches.length) % matches.length];
    if (!tree.within(next, focus)) zoom(0);
    go(next);
  }

  function go(node: number): void {
    cursor = node;
    tell(node);
    draw();
  }

  function top(): void {
    find("top").replaceChildren(both ? changedFunctions(view, both) : functions(view, tree));
  }

  /** What the shown stacks are compared with, if there are such. */
  function pair(): Both | null {
    const { base, flame } = view.state;
    const shown = report.flames[flame];
    const before = base && view.axes[base.of].report.flames.find((one) => one.name === shown.name);
    if (!before) return null;
    const key = `${base.of}-${shown.name}`;
    if (!pairs.has(key)) pairs.set(key, new Both(before, shown));
    return pairs.get(key)!;
  }

  function update(): void {
    const { title } = report.flames[view.state.flame];
    both = pair();
    both?.weigh(view.base!, view.part, only.checked);
    tree = both?.tree ?? trees[view.state.flame];
    if (!both) tree.weigh(view.part);
    if (!tree.total[focus]) focus = cursor = 0;
    only.parentElement!.hidden = !both;
    if (both) legend(CHANGES, "change");
    else legend(Object.fromEntries(Object.entries(KINDS).filter(([kind]) => tree.kinds.has(kind))), "kind");
    const told = both ? `${title}: ${compared(...both.of(0))}` : `${title}: ${duration(tree.total[0])}`;
    const { cpu, range } = view.state;
    const shift = longer(tree.flame, cpu);
    const step = range && shift ? `, to whole steps of ${duration(report.time.bin_ns * 2 ** shift)}` : "";
    const untold = cpu === null || tree.flame.by_cpu ? "" : ": too many stacks to tell them apart by CPU";
    const alone = view.base && !both ? "; the baseline has no such stacks" : "";
    const where = `${cpu === null ? "" : ` on CPU ${cpu}`}${range ? ` in the selected range${step}` : ""}`;
    find("flame-total").textContent = told + where + untold + alone;
    const kind = both ? "Difference of two flame graphs" : "Flame graph";
    canvas.setAttribute("aria-label", `${kind}, ${told}. Arrow keys walk, Enter zooms, Escape zooms out; the table below holds the same.`);
    seek();
    zoom(focus);
    top();
  }

  canvas.addEventListener("mousemove", (event) => {
    const node = picture.hit(event);
    if (node !== null) tell(node);
    canvas.style.cursor = node === null ? "default" : "pointer";
  });
  canvas.addEventListener("mouseleave", () => tell(cursor));
  canvas.addEventListener("click", (event) => {
    const node = picture.hit(event);
    if (node !== null) zoom(node);
  });
  canvas.addEventListener("keydown", (event) => {
    const siblings = cursor ? tree.children(tree.flame.parents[cursor]) : [0];
    const place = siblings.indexOf(cursor);
    const [inward, outward] = flip.checked ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    const moves: Record<string, () => void> = {
      ArrowLeft: () => go(siblings[Math.max(0, place - 1)]),
      ArrowRight: () => go(siblings[Math.min(siblings.length - 1, place + 1)]),
      [outward]: () => go(tree.flame.parents[cursor]),
      [inward]: () => go(tree.children(cursor).sort((one, other) => tree.total[other] - tree.total[one])[0] ?? cursor),
      Enter: () => zoom(cursor),
      Escape: () => zoom(focus === cursor ? 0 : focus),
      n: () => step(1),
      N: () => step(-1),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  });
  search.addEventListener("input", () => view.set({ search: search.value }));
  find("next").addEventListener("click", () => step(1));
  find("previous").addEventListener("click", () => step(-1));
  flip.addEventListener("change", draw);
  only.addEventListener("change", update);
  onTheme(draw);
  new ResizeObserver(() => draw()).observe(canvas.parentElement!);
  view.listen((state, changed) => {
    if (changed.includes("flame")) {
      focus = cursor = 0;
      tabs.forEach((tab, place) => {
        tab.setAttribute("aria-selected", String(place === state.flame));
        tab.tabIndex = place === state.flame ? 0 : -1;
      });
    }
    if ((["flame", "range", "base", "cpu"] as const).some((one) => changed.includes(one))) return update();
    if (changed.includes("search")) {
      if (search.value !== state.search) search.value = state.search;
      seek();
      draw();
      top();
    }
  });
  search.value = view.state.search;
}
