// The flame graph of the selected range, on a canvas: 50,000 nodes are one picture, and the keyboard walks through them.

import { onTheme } from "./colors";
import { find, h, name, table } from "./dom";
import { duration, percent } from "./format";
import { KINDS, Picture } from "./picture";
import { literal, pattern, Tree } from "./tree";
import type { View } from "./view";

const TOP = 40;

export function flame(view: View): void {
  const { report } = view;
  if (!report.flames.length) {
    find("flame-panel").replaceChildren(
      h("p", {}, "No stacks were recorded: foreshock record --deep takes them, on and off the CPU."),
    );
    return;
  }
  const trees = report.flames.map((one) => new Tree(one));
  const canvas = find("flame") as HTMLCanvasElement;
  const picture = new Picture(canvas);
  const search = find("search") as HTMLInputElement;
  const flip = find("flip") as HTMLInputElement;
  let tree = trees[0];
  let focus = 0;
  let cursor = 0;
  let found: { matches: Set<number>; weight: number } | null = null;

  const tabs = report.flames.map((one, place) =>
    h("button", { type: "button", role: "tab", "aria-controls": "flame-panel", click: () => view.set({ flame: place }) }, one.title),
  );
  find("flame-tabs").append(...tabs);
  find("legend").append(...Object.entries(KINDS).map(([kind, told]) => h("span", { class: `kind kind-${kind}` }, told)));

  function draw(): void {
    picture.draw(tree, { focus, cursor, matches: found?.matches ?? null, upwards: flip.checked });
  }

  function tell(node: number): void {
    const all = tree.total[0];
    const module = tree.module(node);
    find("flame-detail").replaceChildren(
      name(tree.name(node)),
      module ? h("span", { class: "muted" }, " in ", name(module)) : "",
      `: ${duration(tree.total[node])}, ${percent(tree.total[node] / all)}; itself ${duration(tree.own[node])} (${KINDS[tree.kind(node)]})`,
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
    const matched = found ? `${percent(found.weight / (tree.total[0] || NaN))} matched, ${found.matches.size} frames` : "";
    find("matched").textContent = matched;
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
    const all = tree.total[0] || 1;
    const functions = tree.functions().sort((one, other) => other.own - one.own || other.total - one.total);
    const shown = view.state.search ? functions.filter(({ at }) => pattern(view.state.search).test(tree.flame.names[at][0])) : functions;
    const told = shown.slice(0, TOP).map(({ at, own, total }) => [
      h("button", { type: "button", class: "link", click: () => view.set({ search: `^${literal(tree.flame.names[at][0])}$` }) }, name(tree.flame.names[at][0])),
      name(tree.flame.modules[tree.flame.names[at][2]]),
      `${duration(own)}`,
      percent(own / all),
      `${duration(total)}`,
      percent(total / all),
    ]);
    find("top").replaceChildren(table("Functions by their own time", ["function", "module", "itself", "share", "with callees", "share"], told, [2, 3, 4, 5]));
  }

  function update(): void {
    tree.weigh(...view.bins);
    if (!tree.total[focus]) focus = cursor = 0;
    const told = `${report.flames[view.state.flame].title}: ${duration(tree.total[0])}`;
    const step = tree.flame.longer ? `, to whole steps of ${duration(report.time.bin_ns * 2 ** tree.flame.longer)}` : "";
    find("flame-total").textContent = view.state.range ? `${told} in the selected range${step}` : told;
    canvas.setAttribute("aria-label", `Flame graph, ${told}. Arrow keys walk, Enter zooms, Escape zooms out; the table below holds the same.`);
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
  onTheme(draw);
  new ResizeObserver(() => draw()).observe(canvas.parentElement!);
  view.listen((state, changed) => {
    if (changed.includes("flame")) {
      tree = trees[state.flame];
      focus = cursor = 0;
      tabs.forEach((tab, place) => {
        tab.setAttribute("aria-selected", String(place === state.flame));
        tab.tabIndex = place === state.flame ? 0 : -1;
      });
    }
    if (changed.includes("flame") || changed.includes("range")) return update();
    if (changed.includes("search")) {
      if (search.value !== state.search) search.value = state.search;
      seek();
      draw();
      top();
    }
  });
  search.value = view.state.search;
}
