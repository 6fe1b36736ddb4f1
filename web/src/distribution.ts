// The selected range of a series: how its values are distributed, and the numbers people ask of it; the baseline's beside.

import uPlot from "uplot";
import { Part } from "./axis";
import { color, onTheme } from "./colors";
import type { Entry, Series } from "./data";
import { find, h, name, table } from "./dom";
import { atMost, change, count, duration, rate } from "./format";
import { byCpu, edge, ofCpu, quantiles, SLOTS, summed, total } from "./histogram";
import { axis, line, told } from "./plots";
import { label, like, type View } from "./view";

export function distribution(view: View): void {
  const { report } = view;
  const target = find("histogram");
  /** Counts by slot of the range and of the baseline, and by how much they are divided to be compared. */
  let both: [Float64Array, Float64Array | null] = [new Float64Array(SLOTS), null];
  let lengths: [number, number] = [1, 1];
  const { bars, stepped } = uPlot.paths;
  const plot: uPlot = new uPlot(
    {
      width: target.clientWidth,
      height: 200,
      padding: [16, 28, 0, 0], // half of the outermost labels
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
      series: [
        {},
        line("accent", "values", "y", { paths: bars!({ size: [1], gap: 0 }), fill: () => color("accent"), fillTo: () => limits()[0], width: 0 }),
        line("base", "baseline", "y", { paths: stepped!({ align: 0 as 1 }), width: 2, dash: [6, 3] }),
      ],
      scales: { x: { time: false }, y: { distr: 3, range: () => limits() } },
      axes: [
        axis({ values: (_, splits) => splits.map((slot) => (report.edges[slot] ? duration(edge(slot, report.edges)) : "")), space: 70 }),
        axis({ size: 64, values: (self, splits) => told(both[1] ? rate : count)(self, splits), splits: within }),
      ],
      hooks: {
        setCursor: [
          ({ cursor: { idx } }) => {
            const slot = idx === null || idx === undefined ? -1 : plot.data[0][idx];
            find("histogram-detail").textContent = slot > 0 ? `${here(slot)} of ${duration(report.edges[slot - 1])} to ${duration(edge(slot, report.edges))}` : "";
          },
        ],
      },
    },
    [[0], [0], [0]],
    target,
  );

  function here(slot: number): string {
    const [now, before] = both.map((one, side) => one && rate(one[slot] / lengths[side]));
    return both[1] ? `${now}, ${before} in the baseline` : count(both[0][slot]);
  }

  function within(): number[] {
    const [low, high] = limits();
    return POWERS.filter((one) => one >= low && one <= high);
  }

  function limits(): [number, number] {
    const values = both.flatMap((one, side) => (one ? Array.from(one, (value) => value / lengths[side]).filter((value) => value > 0) : []));
    return [Math.min(1, ...values) / 2, Math.max(1e-9, ...values) * 2];
  }

  new ResizeObserver(() => plot.setSize({ width: Math.max(200, target.clientWidth), height: 200 })).observe(target);
  onTheme(() => plot.redraw(false, true));
  view.listen((state, changed) => {
    const series = report.series[state.series];
    if (!series || !(["series", "range", "base", "cpu"] as const).some((one) => changed.includes(one))) return;
    const { base, part } = view;
    both = [countsOf(part, series), base && countsOf(base, series)];
    lengths = base ? [part.seconds, base.seconds] : [1, 1];
    const used = [...both[0].keys()].filter((slot) => both[0][slot] > 0 || both[1]?.[slot]);
    const [first, last] = used.length ? [Math.max(0, used[0] - 2), Math.min(SLOTS - 1, used[used.length - 1] + 2)] : [0, 1];
    const xs = Array.from({ length: last - first + 1 }, (_, place) => first + place);
    const floor = limits()[0];
    plot.setData([
      xs,
      xs.map((slot) => both[0][slot] / lengths[0] || null),
      xs.map((slot) => (both[1] ? both[1][slot] / lengths[1] || floor : null)),
    ]);
    find("histogram-legend").hidden = !base;
    find("histogram-now").textContent = state.range ? "selected" : "whole recording";
    find("numbers").replaceChildren(numbers(view, series, both[0], both[1]));
    const whole = !state.range && !base;
    find("entries").replaceChildren(...(whole || !series.by_cpu ? [] : [cpus(view, series)]), ...(whole || !isByCpu(view, series) ? [entries(view, series)] : []));
  });
}

const MOST_CPUS = 64;
const HEADS: Record<string, string> = { cpu: "CPU" };
const POWERS = Array.from({ length: 16 }, (_, power) => 10 ** (power - 6));

/** The same series' counts by slot in a part of any recording; none where it has no such series. */
export function countsOf({ axis, bins, cpu }: Part, series: Series): Float64Array {
  const found = like(axis.report, series);
  return found ? summed(ofCpu(found, cpu, axis.report), ...bins) : new Float64Array(SLOTS);
}

function numbers(view: View, series: Series, now: Float64Array, before: Float64Array | null): HTMLElement {
  const { edges, time } = view.report;
  const { base, part } = view;
  const values = (one: Float64Array, seconds: number) => [total(one) / seconds, ...quantiles(one, edges)];
  const row = (what: string, one: Float64Array, seconds: number) => {
    const [rated, p50, p90, p99, p999, most] = values(one, seconds);
    return [what, count(total(one)), rate(rated), ...[p50, p90, p99, p999].map(duration), atMost(most)];
  };
  const rows = view.state.range ? [row("selected", now, part.seconds)] : [];
  const whole = row("whole recording", countsOf(new Part(view, null, part.cpu), series), view.measured(0, time.bins));
  if (base && before) {
    const [old, young] = [values(before, base.seconds), values(now, part.seconds)];
    if (!rows.length) rows.push(whole);
    rows.push(row("baseline", before, base.seconds), ["change", "", ...young.map((value, place) => change(old[place], value))]);
  }
  if (rows[0] !== whole) rows.push(whole);
  return table(`${label(series)} in numbers`, ["range", "count", "rate", "p50", "p90", "p99", "p99.9", "max"], rows, [1, 2, 3, 4, 5, 6, 7]);
}

/** Whether what is told of the whole recording is told of any range as well. */
const isByCpu = (view: View, series: Series) =>
  !!series.by_cpu && view.report.entries.filter((one) => one.series === series.name).every(({ keys }) => Object.keys(keys).every((key) => key === "cpu" || key === "vector"));

/** The CPUs of the selected range, the worst first; of the baseline beside them. */
function cpus(view: View, series: Series): HTMLElement {
  const { base, part } = view;
  const { edges, time } = view.report;
  const old = base && like(base.axis.report, series);
  const before = base && old ? byCpu(old, ...base.bins) : null;
  const rows = [...byCpu(series, ...part.bins)].filter(([one]) => part.cpu === null || one === part.cpu);
  const told = rows.map(([one, slots]) => ({ one, count: total(slots), now: quantiles(slots, edges), then: quantiles(before?.get(one) ?? new Float64Array(SLOTS), edges) }));
  told.sort((one, other) => other.now[4] - one.now[4] || (other.now[3] || 0) - (one.now[3] || 0) || other.count - one.count);
  const cells = told.slice(0, MOST_CPUS).map(({ one, count: number, now, then }) => [
    String(one),
    count(number),
    ...[now[0], now[2]].map(duration),
    atMost(now[4]),
    ...(base ? [duration(then[2]), atMost(then[4])] : []),
  ]);
  const heads = ["CPU", "count", "p50", "p99", "max", ...(base ? ["baseline p99", "baseline max"] : [])];
  const step = series.by_cpu!.longer ? `, to whole steps of ${duration(time.bin_ns * 2 ** series.by_cpu!.longer)}` : "";
  const caption = `The worst CPUs of ${view.state.range ? "the selected range" : "the whole recording"}${step}`;
  return cells.length ? table(caption, heads, cells, heads.map((_, place) => place)) : h("p", {}, "Nothing was counted in this range.");
}

/** By CPU, line or device; of another recording those of the same name beside it. */
function entries(view: View, series: Series): HTMLElement {
  const { base, cpu } = view.state;
  const other = base?.of ? view.axes[base.of].report : null;
  const of = (all: Entry[]) => all.filter((one) => one.series === series.name && (!series.part || one.keys.vector === series.part));
  const found = of(view.report.entries).filter((one) => cpu === null || one.keys.cpu === cpu);
  if (!found.length) return h("p", {}, cpu === null || !series.by_cpu ? "Not told apart by CPU." : `CPU ${cpu} is not among the worst.`);
  const keys = Object.keys(found[0].keys);
  const named = (one: Entry) => JSON.stringify(one.keys);
  const before = new Map(of(other?.entries ?? []).map((one) => [named(one), one]));
  const ns = (seconds: number | null | undefined) => duration(seconds === null || seconds === undefined ? NaN : seconds * 1e9);
  const most = (one: Entry | undefined) => atMost(one ? (one.max_s ?? NaN) * 1e9 : NaN);
  const rows = found.map((one) => {
    const old = before.get(named(one));
    return [
      ...keys.map((key) => name(String(one.keys[key]))),
      count(one.count),
      ...[one.p50_s, one.p99_s].map(ns),
      most(one),
      ...(other ? [ns(old?.p99_s), most(old)] : []),
    ];
  });
  const heads = [...keys.map((key) => HEADS[key] ?? key), "count", "p50", "p99", "max", ...(other ? ["baseline p99", "baseline max"] : [])];
  const numeric = heads.slice(keys.length).map((_, place) => place + keys.length);
  return table("The worst, over the whole recording", heads, rows, numeric);
}
