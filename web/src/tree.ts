// A flame graph's tree as columns: weights of any range, places, search. No recursion: nodes come after their parents.

import type { Part } from "./axis";
import type { Flame } from "./data";

/** Nodes whose names match; `outer` are those that lie in no other match, so that each moment counts once. */
export interface Found {
  matches: Set<number>;
  outer: number[];
}

export class Tree {
  readonly size: number;
  readonly depth: Uint16Array;
  /** Of the range: own weight, and with all below. */
  readonly own: Float64Array;
  readonly total: Float64Array;
  /** Where a node begins; its width is its total. */
  readonly start: Float64Array;
  /** Siblings by name, children after parents: places stay the same whatever the range. */
  private readonly order: Uint32Array;
  /** The kinds of its nodes. */
  readonly kinds: Set<string>;

  constructor(readonly flame: Flame) {
    const { parents, nodes, names } = flame;
    this.size = parents.length;
    this.depth = new Uint16Array(this.size);
    for (let node = 1; node < this.size; node++) this.depth[node] = this.depth[parents[node]] + 1;
    this.own = new Float64Array(this.size);
    this.total = new Float64Array(this.size);
    this.start = new Float64Array(this.size);
    const rank = new Uint32Array(names.length);
    [...names.keys()].sort((one, other) => (names[one][0] < names[other][0] ? -1 : 1)).forEach((at, place) => (rank[at] = place));
    this.kinds = new Set(Array.from(parents.keys(), (node) => this.kind(node)));
    this.order = Uint32Array.from(parents.keys()).sort(
      (one, other) => this.depth[one] - this.depth[other] || rank[nodes[one]] - rank[nodes[other]],
    );
  }

  /** Take the weights of a part of the recording. */
  weigh(part: Part): void {
    this.place(weights(this.flame, part));
  }

  /** Take these own weights. */
  place(own: Float64Array): void {
    const { parents } = this.flame;
    this.own.set(own);
    this.total.set(summedUp(this.flame, own));
    const next = new Float64Array(this.size);
    for (const node of this.order) {
      if (node) this.start[node] = next[parents[node]];
      next[node] = this.start[node];
      next[parents[node]] += node ? this.total[node] : 0;
    }
  }

  name(node: number): string {
    return node ? this.flame.names[this.flame.nodes[node]][0] : "all";
  }

  /** KINDS of picture.ts: the kernel's modules and Python are told by their names. */
  kind(node: number): string {
    const [name, kind, module] = this.flame.names[this.flame.nodes[node]];
    if (!node || kind === "m") return "m";
    if (kind === "k" && !["", "[kernel]"].includes(this.flame.modules[module])) return "d";
    return kind === "u" && (name.startsWith("py::") || this.flame.modules[module].endsWith(".py")) ? "p" : kind;
  }

  module(node: number): string {
    return node ? this.flame.modules[this.flame.names[this.flame.nodes[node]][2]] : "";
  }

  path(node: number): number[] {
    const found = [node];
    while (found[0]) found.unshift(this.flame.parents[found[0]]);
    return found;
  }

  within(node: number, ancestor: number): boolean {
    let at = node;
    while (at > ancestor) at = this.flame.parents[at];
    return at === ancestor;
  }

  children(node: number): number[] {
    return [...this.order].filter((one) => one && this.flame.parents[one] === node && this.total[one] > 0);
  }

  /** What is found where of the flame graph's names those match. */
  search(matching: boolean[]): Found {
    const matches = new Set<number>();
    const covered = new Uint8Array(this.size);
    const outer = [];
    for (let node = 1; node < this.size; node++) {
      covered[node] = covered[this.flame.parents[node]];
      if (!matching[this.flame.nodes[node]] || !this.total[node]) continue;
      matches.add(node);
      if (!covered[node]) outer.push(node);
      covered[node] = 1;
    }
    return { matches, outer };
  }

  /** Functions, not tasks, and their weight: own, and with callees, where one counts once per stack. */
  functions(): { at: number; own: number; total: number }[] {
    const own = byFunction(this.flame, this.own);
    const total = byFunction(this.flame, this.total, true);
    return [...own.keys()].filter((at) => total[at] > 0 && isFunction(this.flame, at)).map((at) => ({ at, own: own[at], total: total[at] }));
  }
}

/** Whether a name is what time is spent in, rather than a task. */
export const isFunction = ({ names }: Flame, at: number) => !["t", "a"].includes(names[at][1]);

/** Sums of nodes' values by function; with `once`, of those only that don't stand below the same function. */
export function byFunction({ nodes, parents, names }: Flame, values: Float64Array, once = false): Float64Array {
  const found = new Float64Array(names.length);
  for (let node = 1; node < values.length; node++) {
    if (!values[node]) continue;
    let above = once ? parents[node] : 0;
    while (above && nodes[above] !== nodes[node]) above = parents[above];
    if (!above) found[nodes[node]] += values[node];
  }
  return found;
}

/** By how much a flame graph's bins are longer than the timeline's. */
export const longer = (flame: Flame, cpu: number | null) => (cpu === null ? flame.longer : flame.by_cpu?.longer ?? 0);

/** The flame graph's own bins that hold those of a part. */
export function steps(flame: Flame, { bins: [first, last], cpu }: Part): [number, number] {
  const shift = longer(flame, cpu);
  const low = first >> shift;
  return [low, Math.max(low + 1, Math.ceil(last / 2 ** shift))];
}

/** Each node's own weight in a part. */
export function weights(flame: Flame, part: Part): Float64Array {
  const own = new Float64Array(flame.parents.length);
  each(flame, part, (leaf, weight, idle) => {
    if (!idle || part.idle) own[leaf] += weight;
  });
  return own;
}

/** What a part weighs by kinds of idle waits; the first is what is none. */
export function byIdleKind(flame: Flame, part: Part, kinds: number): Float64Array {
  const found = new Float64Array(kinds);
  each(flame, part, (_, weight, idle) => (found[idle] += weight));
  return found;
}

export const hasIdle = (flame?: Flame) => !!flame?.idle?.some((kind) => kind > 0);

function each(flame: Flame, part: Part, tell: (leaf: number, weight: number, idle: number) => void): void {
  const found = part.cpu === null ? flame : flame.by_cpu;
  if (!found) return;
  const { bins, leaves, weights, idle } = found;
  const [low, high] = steps(flame, part);
  for (let row = lowerBound(bins, low); row < bins.length && bins[row] < high; row++)
    if (part.cpu === null || flame.by_cpu!.cpus[row] === part.cpu) tell(leaves[row], weights[row], idle ? idle[row] : 0);
}

/** Each node's weight with all below it. */
export function summedUp({ parents }: Flame, own: Float64Array): Float64Array {
  const total = own.slice();
  for (let node = total.length - 1; node > 0; node--) total[parents[node]] += total[node];
  return total;
}

function lowerBound(values: Uint32Array, wanted: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
