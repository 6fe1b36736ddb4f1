// What is shown of a flame graph as a file: its stacks for other viewers, its picture for a ticket.

import type { Both } from "./both";
import { find } from "./dom";
import type { Tree } from "./tree";

// Before the weight, flamegraph.pl takes it for another one.
const NUMBER = /\s(?=\d+(?:\.\d*)?$)/;
/** Until then the browser has begun to save. */
const SAVED_MS = 10_000;

interface Shown {
  tree: Tree;
  both: Both | null;
  focus: number;
  name: string;
}

export function save(shown: () => Shown): void {
  find("save-folded").addEventListener("click", () => {
    const { name, ...what } = shown();
    write(new Blob(folded(what), { type: "text/plain" }), `${name}.folded`);
  });
  find("save-picture").addEventListener("click", () => {
    const { name } = shown();
    (find("flame") as HTMLCanvasElement).toBlob((picture) => picture && write(picture, `${name}.png`));
  });
}

/** A line per stack in what is zoomed into, in ns; of a difference two numbers, the baseline's first, per second. */
function folded({ tree, both, focus }: Omit<Shown, "name">): string[] {
  const weights = both ? both.owns : [tree.own];
  const lines: string[] = [];
  for (let node = 1; node < tree.size; node++) {
    const told = weights.map((own) => Math.round(own[node]));
    if (!told.some((ns) => ns > 0) || !tree.within(node, focus)) continue;
    const path = tree.path(node).slice(1).map((one) => frame(tree, one));
    lines.push(`${path.join(";").replace(NUMBER, "_")} ${told.join(" ")}\n`);
  }
  return lines;
}

/** As `foreshock export --format folded` writes it: no name ends a frame. */
function frame(tree: Tree, node: number): string {
  const [name, kind] = [tree.name(node), tree.kind(node)];
  if (["t", "w", "a"].includes(kind)) return name.replace(/[\s;]/g, "_");
  return name.replace(/;/g, ":") + (["k", "d"].includes(kind) ? "_[k]" : "");
}

function write(content: Blob, file: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVED_MS);
}
