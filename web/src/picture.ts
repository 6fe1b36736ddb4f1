// A flame graph on a canvas: what is visible of a tree, and which node is where.

import type { Both } from "./both";
import { color } from "./colors";
import { sign } from "./format";
import type { Tree } from "./tree";

const ROW = 18;
const LEAST = 0.5; // pixels
const HATCH = 6;
const LESS = 2;
export const KINDS: Record<string, string> = {
  t: "task",
  w: "waiting task",
  a: "woken by",
  k: "kernel",
  d: "kernel module",
  u: "program",
  p: "Python",
  m: "no function",
};

interface Shown {
  /** The node that takes the whole width. */
  focus: number;
  cursor: number;
  matches: Set<number> | null;
  upwards: boolean;
  /** Of a difference. */
  both: Both | null;
}

/** Left, top, width, height. */
type Place = [number, number, number, number];

interface Box {
  node: number;
  left: number;
  width: number;
}

export class Picture {
  private rows: Box[][] = [];
  private upwards = false;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  draw(tree: Tree, shown: Shown): void {
    this.upwards = shown.upwards;
    const width = this.canvas.clientWidth;
    this.rows = visible(tree, shown.focus, width);
    const context = this.sized(width, this.rows.length * ROW);
    const letter = context.measureText("m").width;
    const colors = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, color(`kind-${kind}`)]));
    const [text, match, edge] = [color("flame-text"), color("match"), color("accent")];
    const paints = ["same", "more", "less", "hatch"].map((part) => color(`change-${part}`));
    for (const [depth, boxes] of this.rows.entries())
      for (const { node, left, width: wide } of boxes ?? []) {
        const top = this.top(depth);
        const matches = shown.matches?.has(node);
        const pale = depth < tree.depth[shown.focus] || (shown.matches && !matches);
        const box: Place = [left, top, Math.max(LEAST, wide - 0.7), ROW - 1];
        context.globalAlpha = pale ? 0.45 : 1;
        if (shown.both && !matches) changes(context, box, shares(shown.both, node), paints);
        else {
          context.fillStyle = matches ? match : colors[tree.kind(node)];
          context.fillRect(...box);
        }
        context.globalAlpha = 1;
        const room = Math.floor((wide - 6) / letter);
        if (room >= 3) {
          const told = shown.both ? `${sign(...shown.both.of(node))} ${tree.name(node)}`.trim() : tree.name(node);
          context.fillStyle = pale ? color("text") : text;
          context.fillText(told.length > room ? `${told.slice(0, room - 1)}…` : told, left + 3, top + ROW / 2);
        }
        if (node === shown.cursor) {
          context.strokeStyle = edge;
          context.lineWidth = 2;
          context.strokeRect(left + 1, top + 1, Math.max(2, wide - 2), ROW - 3);
        }
      }
  }

  /** Have a row of the canvas in the part that its box shows. */
  reveal(depth: number): void {
    const box = this.canvas.parentElement!;
    const top = this.top(depth);
    box.scrollTop = Math.min(top, Math.max(box.scrollTop, top + ROW - box.clientHeight));
  }

  /** The node under the mouse. */
  hit(event: MouseEvent): number | null {
    const { left, top } = this.canvas.getBoundingClientRect();
    const [x, row] = [event.clientX - left, Math.floor((event.clientY - top) / ROW)];
    const boxes = this.rows[this.upwards ? this.rows.length - 1 - row : row] ?? [];
    return boxes.find((box) => x >= box.left && x < box.left + box.width)?.node ?? null;
  }

  private top(depth: number): number {
    return (this.upwards ? this.rows.length - 1 - depth : depth) * ROW;
  }

  private sized(width: number, height: number): CanvasRenderingContext2D {
    const ratio = devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = this.canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.font = "12px ui-monospace, Menlo, Consolas, monospace";
    context.textBaseline = "middle";
    return context;
  }
}

/** The shares of a node that both ranges have, that one has more of, and that it has less of. */
function shares({ tree, same, more }: Both, node: number): number[] {
  const all = tree.total[node] || 1;
  return [same[node] / all, more[node] / all, Math.max(0, 1 - (same[node] + more[node]) / all)];
}

/** Left what both have, then what there is more of, then, hatched, what there was more of. */
function changes(context: CanvasRenderingContext2D, [left, top, width, height]: Place, parts: number[], paints: string[]): void {
  let at = left;
  for (const [place, part] of parts.entries()) {
    const wide = part * width;
    context.fillStyle = paints[place];
    context.fillRect(at, top, wide, height);
    if (place === LESS && wide > 2) hatch(context, [at, top, wide, height], paints[parts.length]);
    at += wide;
  }
}

function hatch(context: CanvasRenderingContext2D, [left, top, width, height]: Place, paint: string): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = paint;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = Math.floor((left - height) / HATCH) * HATCH; x < left + width; x += HATCH) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

/** By depth: what is above the focus, and what below it is wide enough to be seen. */
function visible(tree: Tree, focus: number, width: number): Box[][] {
  const rows: Box[][] = [];
  const scale = tree.total[focus] ? width / tree.total[focus] : 0;
  const add = (node: number, left: number, wide: number) => (rows[tree.depth[node]] ??= []).push({ node, left, width: wide });
  for (const node of tree.path(focus)) if (node !== focus) add(node, 0, width);
  for (let node = focus; node < tree.size; node++) {
    const wide = tree.total[node] * scale;
    if (wide >= LEAST && tree.within(node, focus)) add(node, (tree.start[node] - tree.start[focus]) * scale, wide);
  }
  if (!rows.length) add(focus, 0, width);
  return rows;
}
