// The way from the whole flame graph to what it is zoomed into; of a long one its two ends, until the rest is asked for.

import { find, h, refill } from "./dom";
import type { Tree } from "./tree";

const FIRST = 3;
const LAST = 4;

export function crumbs(tree: Tree, node: number, zoom: (node: number) => void, whole = false): void {
  const path = tree.path(node).map((one) =>
    h("button", { type: "button", "aria-current": one === node ? "location" : false, click: () => zoom(one) }, tree.name(one)),
  );
  const left = path.length - FIRST - LAST;
  if (left > 1 && !whole) {
    const told = h("button", { type: "button", "aria-label": `${left} more between`, click: () => crumbs(tree, node, zoom, true) }, `… ${left} more …`);
    path.splice(FIRST, left, told);
  }
  refill(find("crumbs"), ...path);
}
