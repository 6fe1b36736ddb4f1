// What changed against the baseline: every series at once, where CPU time went, and how the nodes are set up.

import { countsOf } from "./distribution";
import { cpuShares } from "./cputime";
import type { Series } from "./data";
import { find, h, name, refill, table } from "./dom";
import { atMost, duration, percent, rate } from "./format";
import { difference as told } from "./functions";
import { quantiles, total } from "./histogram";
import { label, type View } from "./view";

const MOST_CPUS = 16;
/** From this share on a CPU does something else than before. */
const MOVED = 0.05;

export function difference(view: View): void {
  view.listen((_, changed) => {
    if (!changed.includes("range") && !changed.includes("base") && !changed.includes("cpu")) return;
    const { base } = view;
    find("difference").hidden = !base;
    if (!base) return;
    const { report } = base.axis;
    const beside = view.state.base!.of ? [name(report.title), ` (${report.headline}), `] : [];
    find("difference-what").replaceChildren(
      `${view.state.range ? "Selected" : "The whole recording"}, ${view.part}, against `,
      ...beside,
      `${base}. Rates and stacks are per second, so that ranges of any length compare.`,
    );
    refill(find("changes"), series(view));
    find("cpu-changes").replaceChildren(...cpus(view));
    find("setup-changes").replaceChildren(...(view.state.base!.of ? setup(view) : []));
  });
}

/** All series: those whose p99 or maximum moved furthest first, long ones before short ones. */
function series(view: View): HTMLElement {
  const [part, base] = [view.part, view.base!];
  const named = new Map([...base.axis.report.series, ...view.report.series].map((one) => [label(one), one]));
  const rows = [...named.values()].map((one) => {
    const sides = [base, part].map((side) => numbers(countsOf(side, one), view.report.edges, side.seconds));
    return { one, sides, moved: Math.max(...[0, 1].map((place) => moved(sides[0][place], sides[1][place]))) };
  });
  rows.sort((one, other) => other.moved - one.moved);
  const formats = [duration, atMost, rate];
  const cells = rows.map(({ one, sides: [before, now] }) => [
    chooser(view, one),
    ...formats.flatMap((format, place) => [format(now[place]), format(before[place]), told(before[place], now[place])]),
  ]);
  const heads = ["series", "p99", "baseline", "change", "max", "baseline", "change", "rate", "baseline", "change"];
  return table("Latencies, those that changed most first", heads, cells, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

function chooser(view: View, one: Series): HTMLElement {
  const place = view.report.series.findIndex((own) => label(own) === label(one));
  const click = () => view.set({ series: place });
  return place < 0 ? h("span", {}, label(one)) : h("button", { type: "button", class: "link", click }, label(one));
}

/** p99 and maximum in ns, and how many there are a second. */
function numbers(slots: Float64Array, edges: Float64Array, seconds: number): [number, number, number] {
  const [, , p99, , most] = quantiles(slots, edges);
  return [p99, most, total(slots) / seconds];
}

/** How many times a latency doubled or halved, weighed by how many digits of microseconds it has: short ones harm less. */
function moved(before: number, now: number): number {
  if (!(before > 0 && now > 0 && Number.isFinite(before + now))) return 0;
  return Math.abs(Math.log2(now / before)) * Math.log10(1 + Math.max(before, now) / 1e3);
}

/** The CPUs whose time is spent otherwise. */
function cpus(view: View): HTMLElement[] {
  if (!view.part.seconds || !view.base!.seconds) return [h("p", {}, "In one of the two ranges nothing was measured.")];
  const { states } = view.report.lanes;
  const before = cpuShares(view.base!.axis.report, view.base!.bins);
  const rows = [...cpuShares(view.report, view.bins)].flatMap(([cpu, now]) => {
    const old = before.get(cpu);
    const most = old ? Math.max(...now.map((share, state) => Math.abs(share - old[state]))) : 0;
    return old && most >= MOVED ? [{ cpu, now, old, most }] : [];
  });
  if (!before.size) return [];
  if (!rows.length) return [h("p", {}, `Every CPU's time is spent as in the baseline, to ${percent(MOVED)}.`)];
  rows.sort((one, other) => other.most - one.most);
  const cells = rows.slice(0, MOST_CPUS).map(({ cpu, now, old }) => [String(cpu), ...now.flatMap((share, state) => [percent(share), percent(old[state])])]);
  const heads = ["CPU", ...[...states, "idle"].flatMap((state) => [state, "baseline"])];
  const more = rows.length - cells.length;
  return [
    table("CPU time, the CPUs that changed most", heads, cells, heads.map((_, place) => place)),
    h("p", { class: "muted" }, more > 0 ? `${more} more CPUs changed.` : ""),
  ];
}

/** How the two nodes are set up differently. */
function setup(view: View): HTMLElement[] {
  const { differences, title } = view.base!.axis.report;
  if (!differences.length) return [h("p", {}, "The nodes are set up alike, as far as was recorded.")];
  const rows = differences.map((row) => row.map((cell) => (cell ? name(cell) : "–")));
  return [table("Set up differently", ["setting", "this recording", title], rows)];
}
