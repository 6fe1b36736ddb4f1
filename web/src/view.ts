// What is shown: a range of bins, what it is compared with, a series, a flame graph. Kept in the address, so that a link
// leads to the same view.

import { Axis, Part } from "./axis";
import type { Report, Series } from "./data";

type Range = [number, number] | null;

/** A part of a recording by its place: 0 is the report's own, others are those beside it. */
export interface Base {
  of: number;
  range: Range;
}

export interface State {
  /** First bin and one after the last; null is all of them. */
  range: Range;
  /** What the range is compared with; null is nothing. */
  base: Base | null;
  /** The CPU that is shown; null is all of them. */
  cpu: number | null;
  series: number;
  flame: number;
  search: string;
}

type Listener = (state: State, changed: (keyof State)[]) => void;

export class View extends Axis {
  readonly state: State;
  /** All recordings, the report's own first. */
  readonly axes: Axis[];
  private readonly listeners: Listener[] = [];

  constructor(report: Report, beside: Report[]) {
    super(report);
    this.axes = [this, ...beside.map((one) => new Axis(one))];
    this.state = { range: null, base: null, cpu: null, series: Math.max(0, firstSeries(report)), flame: 0, search: "", ...this.read() };
    addEventListener("hashchange", () => this.set(this.read()));
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
    listener(this.state, ["range", "base", "cpu", "series", "flame", "search"]);
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

  /** What is shown. */
  get part(): Part {
    return new Part(this, this.state.range, this.state.cpu);
  }

  /** What it is compared with. */
  get base(): Part | null {
    const { base } = this.state;
    return base && new Part(this.axes[base.of], base.range, this.state.cpu);
  }

  /** First bin and one after the last of what is shown. */
  get bins(): [number, number] {
    return this.part.bins;
  }

  /** Show these bins, as far as there are such. */
  select(first: number, last: number): void {
    this.set({ range: this.whole(first, last) });
  }

  /** Compare with these bins of a recording. */
  compare(of: number, first: number, last: number): void {
    this.set({ base: { of, range: this.axes[of].whole(first, last) } });
  }

  private fragment(): string {
    const { range, base, cpu, series, flame, search } = this.state;
    const parts = new URLSearchParams();
    if (range) parts.set("range", range.join("-"));
    if (written(base) !== written(this.first)) parts.set("baseline", written(base));
    if (cpu !== null) parts.set("cpu", String(cpu));
    const shown = this.report.series[series];
    if (shown) parts.set("series", label(shown));
    if (flame) parts.set("stacks", this.report.flames[flame].name);
    if (search) parts.set("search", search);
    return parts.toString();
  }

  private read(): Partial<State> {
    const parts = new URLSearchParams(location.hash.slice(1));
    const found: Partial<State> = { range: null, base: this.first, search: parts.get("search") ?? "" };
    found.range = this.readRange(this, parts.get("range"));
    const [of, range] = (parts.get("baseline") ?? "").split(":");
    if (of === NOTHING) found.base = null;
    else if (/^\d+$/.test(of) && this.axes[+of]) found.base = { of: +of, range: this.readRange(this.axes[+of], range) };
    const cpu = parts.get("cpu");
    found.cpu = cpu !== null && this.report.lanes.cpus.includes(+cpu) ? +cpu : null;
    const series = this.report.series.findIndex((one) => label(one) === parts.get("series"));
    if (series >= 0) found.series = series;
    const flame = this.report.flames.findIndex((one) => one.name === parts.get("stacks"));
    if (flame >= 0) found.flame = flame;
    return found;
  }

  /** What a report is compared with until its reader says otherwise: the first recording beside it. */
  private get first(): Base | null {
    return this.axes.length > 1 ? { of: 1, range: null } : null;
  }

  private readRange(axis: Axis, text: string | null | undefined): Range {
    const [, first, last] = (/^(\d+)-(\d+)$/.exec(text ?? "") ?? []).map(Number);
    return first < last && last <= axis.report.time.bins ? [first, last] : null;
  }
}

const NOTHING = "none";
const written = (base: Base | null) => (base ? [base.of, ...(base.range ? [base.range.join("-")] : [])].join(":") : NOTHING);

export const label = (series: Series) => (series.part ? `${series.name} ${series.part}` : series.name);

/** The same series of another report. */
export const like = (report: Report, series: Series) => report.series.find((one) => label(one) === label(series)) ?? null;

/** The series for which a node is looked at; that of the worst finding; else run-queue waits; else any. */
function firstSeries(report: Report): number {
  const striking = [...(report.comparison ? [report.comparison] : []), ...report.findings];
  for (const { series } of striking) {
    const found = seriesOf(report, series);
    if (found >= 0) return found;
  }
  return Math.max(0, seriesOf(report, "runqueue.wait"));
}

export function seriesOf(report: Report, rule: string): number {
  const exact = report.series.findIndex((one) => label(one) === rule);
  return exact >= 0 ? exact : report.series.findIndex((one) => one.name.split(".")[0] === rule.split(".")[0]);
}
