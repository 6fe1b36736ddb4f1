// Two ranges' stacks in one tree: what both have, what only the shown one has more of, and what the baseline had more of.
// Weights are per second of each range, so that ranges of any length compare.

import type { Part } from "./axis";
import type { Flame } from "./data";
import { recordedBins } from "./recorded";
import { byFunction, isFunction, longer, steps, summedUp, Tree, weights } from "./tree";

/** A function, and its weight per second in the baseline and in what is shown: own, and with callees. */
export interface Changed {
  at: number;
  own: [number, number];
  total: [number, number];
}

export class Both {
  /** Its own weights are the greater of the two: a stack that vanished has room, too. */
  readonly tree: Tree;
  /** By node, with all below it: what the baseline, and what is shown, weighs. */
  totals: [Float64Array, Float64Array];
  /** The same without what is below it. */
  owns: [Float64Array, Float64Array];
  /** By node, with all below it: what both have, and what was added. What was lost is the rest. */
  same: Float64Array;
  more: Float64Array;
  private readonly places: [Uint32Array, Uint32Array];
  private seconds: [number, number] = [1, 1];

  constructor(
    private readonly before: Flame,
    private readonly shown: Flame,
  ) {
    const { flame, place } = joined(shown, before);
    this.tree = new Tree(flame);
    this.places = [place, Uint32Array.from(shown.parents.keys())];
    this.owns = this.totals = [new Float64Array(this.tree.size), new Float64Array(this.tree.size)];
    this.same = this.more = this.totals[0];
  }

  /** Take the weights of two ranges; of `onlyChanges`, what both have takes no room. */
  weigh(base: Part, part: Part, onlyChanges: boolean): void {
    const { flame, size } = this.tree;
    this.seconds = [measured(this.before, base), measured(this.shown, part)];
    this.owns = [this.spread(0, base), this.spread(1, part)];
    const [before, now] = this.owns;
    const [same, more, width] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
    for (let node = 0; node < size; node++) {
      same[node] = Math.min(before[node], now[node]);
      more[node] = now[node] - same[node];
      width[node] = Math.max(before[node], now[node]) - (onlyChanges ? same[node] : 0);
    }
    this.totals = [summedUp(flame, before), summedUp(flame, now)];
    this.same = summedUp(flame, onlyChanges ? new Float64Array(size) : same);
    this.more = summedUp(flame, more);
    this.tree.place(width);
  }

  /** What a node weighs in the baseline, and in what is shown. */
  of(node: number): [number, number] {
    return [this.totals[0][node], this.totals[1][node]];
  }

  /** What went from a node. */
  less(node: number): number {
    return Math.max(0, this.totals[0][node] - this.totals[1][node] + this.more[node]);
  }

  /** Functions, not tasks; one that stands above itself counts once per stack. */
  functions(): Changed[] {
    const { flame } = this.tree;
    const own = this.owns.map((one) => byFunction(flame, one));
    const total = this.totals.map((one) => byFunction(flame, one, true));
    return [...own[0].keys()]
      .filter((at) => (total[0][at] || total[1][at]) && isFunction(flame, at))
      .map((at) => ({ at, own: [own[0][at], own[1][at]], total: [total[0][at], total[1][at]] }));
  }

  /** Whether two weights of so few samples differ by chance alone: less than twice their standard error (Poisson's). */
  byChance(before: number, now: number): boolean {
    const [earlier, later] = this.seconds;
    const usual = (before * earlier + now * later) / (earlier + later);
    return (now - before) ** 2 <= 4 * usual * this.shown.sample_ns * (1 / earlier + 1 / later);
  }

  private spread(side: 0 | 1, part: Part): Float64Array {
    const found = new Float64Array(this.tree.size);
    const [place, seconds] = [this.places[side], this.seconds[side]];
    const own = weights(side ? this.shown : this.before, part);
    for (const [node, weight] of own.entries()) if (weight) found[place[node]] += weight / seconds;
    return found;
  }
}

/** Seconds with stacks of the flame graph's own bins in which a part lies. */
function measured(flame: Flame, part: Part): number {
  const [low, high] = steps(flame, part).map((step) => step * 2 ** longer(flame, part.cpu));
  const [since, until] = recordedBins(flame, part.axis);
  return part.axis.measured(Math.max(low, since), Math.min(high, until));
}

/** One tree's nodes with those of another one that it lacks, and where the other one's nodes are in it. */
function joined(flame: Flame, other: Flame): { flame: Flame; place: Uint32Array } {
  if (flame === other) return { flame, place: Uint32Array.from(other.parents.keys()) };
  const [names, modules] = [[...flame.names], [...flame.modules]];
  const known = new Map(names.map(([name, kind, module], at) => [JSON.stringify([name, kind, modules[module]]), at]));
  const known_modules = new Map(modules.map((module, at) => [module, at]));
  const number = ([name, kind, module]: [string, string, number]) => {
    const told = other.modules[module];
    const key = JSON.stringify([name, kind, told]);
    if (!known.has(key)) {
      if (!known_modules.has(told)) known_modules.set(told, modules.push(told) - 1);
      known.set(key, names.push([name, kind, known_modules.get(told)!]) - 1);
    }
    return known.get(key)!;
  };
  const numbers = other.names.map(number);
  const [parents, nodes] = [[...flame.parents], [...flame.nodes]];
  const key = (parent: number, name: number) => parent * names.length + name;
  const children = new Map(parents.map((parent, node) => [key(parent, nodes[node]), node]));
  const place = new Uint32Array(other.parents.length);
  for (let node = 1; node < place.length; node++) {
    const [parent, name] = [place[other.parents[node]], numbers[other.nodes[node]]];
    const found = children.get(key(parent, name));
    place[node] = found ?? parents.push(parent) - 1;
    if (found !== undefined) continue;
    nodes.push(name);
    children.set(key(parent, name), place[node]);
  }
  return { flame: { ...flame, names, modules, parents: Uint32Array.from(parents), nodes: Uint32Array.from(nodes) }, place };
}
