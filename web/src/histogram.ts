// Sums of a series' histograms, and the numbers people ask of them.

import type { Report, Series } from "./data";

export const SLOTS = 298;
export const QUANTILES = [0.5, 0.9, 0.99, 0.999, 1];

/** Counts by slot of the bins from `first` up to `last`. */
export function summed(series: Series, first: number, last: number): Float64Array {
  const found = new Float64Array(SLOTS);
  for (let cell = series.starts[first]; cell < series.starts[last]; cell++) found[series.slots[cell]] += series.counts[cell];
  return found;
}

/** A series as one CPU had it, or as it is (null). What is counted in longer bins is spread evenly over the timeline's. */
export function ofCpu(series: Series, cpu: number | null, { time }: Report): Series {
  if (cpu === null) return series;
  const starts = new Uint32Array(time.bins + 1);
  const [slots, counts]: [number[], number[]] = [[], []];
  const { longer, bins, cpus, slots: all, counts: values } = series.by_cpu ?? NOTHING;
  let row = 0;
  for (let bin = 0; bin < time.bins; bin++) {
    starts[bin] = slots.length;
    const step = bin >> longer;
    while (row && bins[row - 1] >= step) row--;
    while (row < bins.length && bins[row] < step) row++;
    const within = Math.min(2 ** longer, time.bins - step * 2 ** longer);
    for (; row < bins.length && bins[row] === step; row++) {
      if (cpus[row] !== cpu) continue;
      slots.push(all[row]);
      counts.push(values[row] / within);
    }
  }
  starts[time.bins] = slots.length;
  return { ...series, starts, slots: Uint16Array.from(slots), counts: Float64Array.from(counts), by_cpu: null };
}

/** Counts by slot of every CPU in the bins from `first` up to `last`, widened to the steps in which CPUs are counted. */
export function byCpu({ by_cpu }: Series, first: number, last: number): Map<number, Float64Array> {
  const { longer, bins, cpus, slots, counts } = by_cpu ?? NOTHING;
  const found = new Map<number, Float64Array>();
  for (let row = 0; row < bins.length; row++) {
    if (bins[row] < first >> longer || bins[row] > (last - 1) >> longer) continue;
    if (!found.has(cpus[row])) found.set(cpus[row], new Float64Array(SLOTS));
    found.get(cpus[row])![slots[row]] += counts[row];
  }
  return found;
}

const NOTHING = { longer: 0, bins: new Uint16Array(), cpus: new Uint16Array(), slots: new Uint16Array(), counts: new Uint32Array() };

export const total = (slots: Float64Array) => slots.reduce((sum, value) => sum + value, 0);

/** Upper edges in ns of the slots where each of `QUANTILES` is reached; NaN for too few values, as everywhere. */
export function quantiles(slots: Float64Array, edges: Float64Array): number[] {
  const all = total(slots);
  return QUANTILES.map((fraction) => {
    if (!all || (fraction < 1 && all < Math.round(2 / (1 - fraction)))) return NaN;
    const rank = Math.max(1, Math.ceil(fraction * all));
    let sum = 0;
    for (let slot = 0; slot < SLOTS; slot++) if ((sum += slots[slot]) >= rank) return edge(slot, edges);
    return Infinity;
  });
}

export const edge = (slot: number, edges: Float64Array) => (slot === SLOTS - 1 ? Infinity : edges[slot]);

/** p50, p99, maximum in ns and count of every bin; NaN where nothing was counted. */
export function byBin(series: Series, edges: Float64Array): [Float64Array, Float64Array, Float64Array, Float64Array] {
  const bins = series.starts.length - 1;
  const found = [0, 1, 2, 3].map(() => new Float64Array(bins)) as ReturnType<typeof byBin>;
  for (let bin = 0; bin < bins; bin++) {
    const slots = summed(series, bin, bin + 1);
    const [p50, , p99, , most] = quantiles(slots, edges);
    [p50, p99, most, total(slots)].forEach((value, line) => (found[line][bin] = value));
  }
  return found;
}
