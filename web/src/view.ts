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
  /** The node of the flame graph that takes the whole width, if it weighs anything in what is shown. */
  zoom: number;
  /** Whether stacks grow upwards. */
  upwards: boolean;
  /** Whether idle waits are shown, too. */
  idle: boolean;
  search: string;
}

/** Changes that follow each other as quickly are one act, which one step back undoes. */
const ONE_ACT_MS = 1000;

type Listener = (state: State, changed: (keyof State)[]) => void;

export class View extends Axis {
  readonly state: State;
  /** All recordings, the report's own first. */
  readonly axes: Axis[];
  private readonly listeners: Listener[] = [];
  private acted = -Infinity;

  constructor(report: Report, beside: Report[]) {
    super(report);
    this.axes = [this, ...beside.map((one) => new Axis(one))];
    this.state = this.read();
    // What follows a step back is another act than what led there.
    addEventListener("popstate", () => (this.acted = -Infinity));
    addEventListener("hashchange", () => this.take(this.read()) && this.write("replaceState"));
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
    listener(this.state, Object.keys(this.state) as (keyof State)[]);
  }

  /** What a reader wants to see; the browser's Back leads back from it. */
  set(change: Partial<State>): void {
    if (!this.take(change)) return;
    const now = performance.now();
    this.write(now - this.acted < ONE_ACT_MS ? "replaceState" : "pushState");
    this.acted = now;
  }

  private write(how: "replaceState" | "pushState"): void {
    history[how](null, "", `#${this.fragment()}`);
  }

  private take(change: Partial<State>): boolean {
    const changed = (Object.keys(change) as (keyof State)[]).filter(
      (key) => JSON.stringify(change[key]) !== JSON.stringify(this.state[key]),
    );
    Object.assign(this.state, change);
    if (changed.length) for (const listener of this.listeners) listener(this.state, changed);
    return changed.length > 0;
  }

  /** What is shown. */
  get part(): Part {
    return new Part(this, this.state.range, this.state.cpu, this.state.idle);
  }

  /** What it is compared with. */
  get base(): Part | null {
    const { base, cpu, idle } = this.state;
    return base && new Part(this.axes[base.of], base.range, cpu, idle);
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

  /** Compare with another recording: with the same time of it, where a time of one is the baseline already. */
  against(of: number): void {
    const { base } = this.state;
    const same = base?.of && base.range ? this.axes[of].sameTime(this.axes[base.of], base.range) : null;
    this.set({ base: { of, range: same } });
  }

  private fragment(): string {
    const { range, base, cpu, series, flame, zoom, upwards, idle, search } = this.state;
    const parts = new URLSearchParams();
    if (range) parts.set("range", range.join("-"));
    if (written(base) !== written(this.first)) parts.set("baseline", written(base));
    if (cpu !== null) parts.set("cpu", String(cpu));
    const shown = this.report.series[series];
    if (shown) parts.set("series", label(shown));
    if (flame) parts.set("stacks", this.report.flames[flame].name);
    if (zoom) parts.set("zoom", String(zoom));
    if (upwards) parts.set("grow", UPWARDS);
    if (idle !== this.report.idle_shown) parts.set("idle", idle ? "shown" : "hidden");
    if (search) parts.set("search", search);
    return parts.toString();
  }

  private read(): State {
    const parts = new URLSearchParams(location.hash.slice(1));
    const cpu = parts.get("cpu");
    const series = this.report.series.findIndex((one) => label(one) === parts.get("series"));
    const flame = this.report.flames.findIndex((one) => one.name === parts.get("stacks"));
    return {
      range: this.readRange(this, parts.get("range")),
      base: this.readBase(parts.get("baseline")),
      cpu: cpu && this.report.lanes.cpus.includes(+cpu) ? +cpu : null,
      series: series >= 0 ? series : firstSeries(this.report),
      flame: Math.max(0, flame),
      zoom: Number(/^\d+$/.exec(parts.get("zoom") ?? "") ?? 0),
      upwards: parts.get("grow") === UPWARDS,
      idle: parts.has("idle") ? parts.get("idle") === "shown" : this.report.idle_shown,
      search: parts.get("search") ?? "",
    };
  }

  private readBase(text: string | null): Base | null {
    const [of, range] = (text ?? "").split(":");
    if (of === NOTHING) return null;
    return /^\d+$/.test(of) && this.axes[+of] ? { of: +of, range: this.readRange(this.axes[+of], range) } : this.first;
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
const UPWARDS = "up";
const written = (base: Base | null) => (base ? [base.of, ...(base.range ? [base.range.join("-")] : [])].join(":") : NOTHING);

export const label = (series: Series) => (series.part ? `${series.name} ${series.part}` : series.name);

/** The same series of another report. */
export const like = (report: Report, series: Series) => report.series.find((one) => label(one) === label(series)) ?? null;

/** The series for which a node is looked at; that of the worst finding; else run-queue waits; else any. */
function firstSeries(report: Report): number {
  const striking = [...(report.comparison ? [report.comparison] : []), ...report.findings];
  for (const one of striking) {
    const found = seriesOf(report, one.series);
    if (found >= 0) return found;
    // An alert need not be about a series: that of another finding would be taken for its.
    if ("until_ns" in one && one.until_ns !== null) break;
  }
  return Math.max(0, seriesOf(report, "runqueue.wait"));
}

export function seriesOf(report: Report, rule: string): number {
  const exact = report.series.findIndex((one) => label(one) === rule);
  return exact >= 0 ? exact : report.series.findIndex((one) => one.name.split(".")[0] === rule.split(".")[0]);
}
