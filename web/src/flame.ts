// The flame graph of the selected range, on a canvas: 50,000 nodes are one picture, and the keyboard walks through them.

import { Both } from "./both";
import { callers } from "./callers";
import { onTheme } from "./colors";
import { crumbs } from "./crumbs";
import type { Flame } from "./data";
import { find, h, refill } from "./dom";
import { percent } from "./format";
import { changedFunctions, compared, functions } from "./functions";
import { Picture } from "./picture";
import { isUnrecorded } from "./recorded";
import { save } from "./save";
import { sought } from "./search";
import { tabs } from "./tabs";
import { tellIdle, tellNode, tellTotal } from "./told";
import { hasIdle, Tree, type Found } from "./tree";
import type { View } from "./view";

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
  const only = find("only-changes") as HTMLInputElement;
  const withIdle = find("with-idle") as HTMLInputElement;
  let tree = trees[0];
  /** The node that takes the whole width, and the one that is told of. */
  let focus = 0;
  let cursor = 0;
  const pairs = new Map<string, Both>();
  let both: Both | null = null;
  let found: Found | null = null;

  tabs(view);
  const tell = (node: number) => tellNode(tree, both, node);

  function draw(): void {
    picture.draw(tree, { focus, cursor, matches: found?.matches ?? null, upwards: view.state.upwards, both });
  }

  function zoom(node: number): void {
    if (node === view.state.zoom) show();
    else view.set({ zoom: node });
  }

  /** What is zoomed into, as long as it weighs anything. */
  function show(): void {
    focus = tree.total[view.state.zoom] ? view.state.zoom : 0;
    crumbs(tree, focus, zoom);
    go(focus);
  }

  function seek(): void {
    const { search: text } = view.state;
    const { matching, wrong } = sought(text, tree.flame);
    found = text ? tree.search(matching) : null;
    find("matched").textContent = found ? `${matched(found.outer)} matched, ${found.matches.size} frames` : "";
    find("search-wrong").textContent = wrong && `No regular expression: searched as plain text. ${wrong}`;
    search.setAttribute("aria-invalid", String(!!wrong));
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
    picture.reveal(tree.depth[node]);
  }

  function top(): void {
    refill(find("top"), both ? changedFunctions(view, both) : functions(view, tree));
    refill(find("around"), ...(found ? callers(view, tree, found, both) : []));
  }

  /** What the shown stacks are compared with, if there are such. */
  function before(): Flame | undefined {
    const { base, flame } = view.state;
    const found = base && view.axes[base.of].report.flames.find((one) => one.name === report.flames[flame].name);
    return found && !isUnrecorded(found, view.base!) ? found : undefined;
  }

  function pair(): Both | null {
    const [shown, other] = [report.flames[view.state.flame], before()];
    if (!other) return null;
    const key = `${view.state.base!.of}-${shown.name}`;
    if (!pairs.has(key)) pairs.set(key, new Both(other, shown));
    return pairs.get(key)!;
  }

  function update(): void {
    both = pair();
    both?.weigh(view.base!, view.part, only.checked);
    tree = both?.tree ?? trees[view.state.flame];
    if (!both) tree.weigh(view.part);
    only.parentElement!.hidden = !both;
    const told = tellTotal(view, tree, both);
    canvas.setAttribute("aria-label", `${told}. Arrow keys walk, Enter zooms, Escape zooms out; the table below holds the same.`);
    tellIdle(view);
    withIdle.checked = view.state.idle;
    withIdle.parentElement!.hidden = ![report.flames[view.state.flame], before()].some(hasIdle);
    seek();
    show();
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
    const [inward, outward] = view.state.upwards ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
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
  save(() => ({ tree, both, focus, name: report.flames[view.state.flame].name }));
  flip.addEventListener("change", () => view.set({ upwards: flip.checked }));
  only.addEventListener("change", update);
  withIdle.addEventListener("change", () => view.set({ idle: withIdle.checked }));
  onTheme(draw);
  new ResizeObserver(() => draw()).observe(canvas.parentElement!);
  view.listen((state, changed) => {
    flip.checked = state.upwards;
    if ((["flame", "range", "base", "cpu", "idle"] as const).some((one) => changed.includes(one))) return update();
    if (changed.includes("search")) {
      if (search.value !== state.search) search.value = state.search;
      seek();
      draw();
      top();
    }
    if (changed.includes("zoom") || changed.includes("upwards")) show();
  });
  search.value = view.state.search;
}
