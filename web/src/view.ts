// What is shown: a range of bins, a series, a flame graph. Kept in the address, so that a link leads to the same view.

import type { Report, Series } from "./data";

export interface State {
  /** First bin and one after the last; null is all of them. */
  range: [number, number] | null;
  series: number;
  flame: number;
  search: string;
}

type Listener = (state: State, changed: (keyof State)[]) => void;

export class View {
  readonly state: State;
  private readonly listeners: Listener[] = [];

  constructor(readonly report: Report) {
    this.state = { range: null, series: Math.max(0, firstSeries(report)), flame: 0, search: "", ...this.read() };
    addEventListener("hashchange", () => this.set(this.read()));
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
    listener(this.state, ["range", "series", "flame", "search"]);
  }

  set(change: Partial<State>): void {
    const changed = (Object.keys(change) as (keyof State)[]).filter(
      (key) => JSON.stringify(change[key]) !== JSON.stringify(this.state[key]),
    );
    if (!changed.length) return;
    Object.assign(this.state, change);
    history.replaceState(null, "", `#${this.fragment()}`);
    for (const listener of this.listeners) listener(this.state, changed);
  }

  /** First bin and one after the last of what is shown. */
  get bins(): [number, number] {
    return this.state.range ?? [0, this.report.time.bins];
  }

  get known(): boolean {
    return this.report.time.start_unix_ms !== null;
  }

  /** The axis: seconds of the wall clock, or since the start. */
  seconds(bin: number): number {
    const { start_unix_ms, bin_ns } = this.report.time;
    return (start_unix_ms ?? 0) / 1e3 + (bin * bin_ns) / 1e9;
  }

  bin(seconds: number): number {
    const { start_unix_ms, bin_ns } = this.report.time;
    return ((seconds - (start_unix_ms ?? 0) / 1e3) * 1e9) / bin_ns;
  }

  binOf(ns: number): number {
    return (ns - this.report.time.start_ns) / this.report.time.bin_ns;
  }

  /** A range of whole bins inside of the recording, at least one long. */
  select(first: number, last: number): void {
    const { bins } = this.report.time;
    const low = Math.min(bins - 1, Math.max(0, Math.floor(Math.min(first, last))));
    const high = Math.min(bins, Math.max(low + 1, Math.ceil(Math.max(first, last))));
    this.set({ range: low === 0 && high === bins ? null : [low, high] });
  }

  private fragment(): string {
    const { range, series, flame, search } = this.state;
    const parts = new URLSearchParams();
    if (range) parts.set("range", range.join("-"));
    const shown = this.report.series[series];
    if (shown) parts.set("series", label(shown));
    if (flame) parts.set("stacks", this.report.flames[flame].name);
    if (search) parts.set("search", search);
    return parts.toString();
  }

  private read(): Partial<State> {
    const parts = new URLSearchParams(location.hash.slice(1));
    const found: Partial<State> = { range: null, search: parts.get("search") ?? "" };
    const range = /^(\d+)-(\d+)$/.exec(parts.get("range") ?? "");
    if (range && +range[1] < +range[2] && +range[2] <= this.report.time.bins) found.range = [+range[1], +range[2]];
    const series = this.report.series.findIndex((one) => label(one) === parts.get("series"));
    if (series >= 0) found.series = series;
    const flame = this.report.flames.findIndex((one) => one.name === parts.get("stacks"));
    if (flame >= 0) found.flame = flame;
    return found;
  }
}

export const label = (series: Series) => (series.part ? `${series.name} ${series.part}` : series.name);

/** The series of the worst finding; else run-queue waits; else any. */
function firstSeries(report: Report): number {
  for (const { series } of report.findings) {
    const found = seriesOf(report, series);
    if (found >= 0) return found;
  }
  return Math.max(0, seriesOf(report, "runqueue.wait"));
}

export function seriesOf(report: Report, rule: string): number {
  const exact = report.series.findIndex((one) => label(one) === rule);
  return exact >= 0 ? exact : report.series.findIndex((one) => one.name.split(".")[0] === rule.split(".")[0]);
}
