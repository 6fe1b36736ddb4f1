// A recording's time: its bins, on the node's clock and on the wall's.

import type { Report } from "./data";
import { clock, digitsOf, duration } from "./format";

/** Where less than this share of a range was measured, it says so. */
const MISSED = 0.9;

export class Axis {
  constructor(readonly report: Report) {}

  get known(): boolean {
    return this.report.time.start_unix_ms !== null;
  }

  /** Seconds of the wall clock, or since the start. */
  seconds(bin: number): number {
    const { start_unix_ms, bin_ns } = this.report.time;
    return (start_unix_ms ?? 0) / 1e3 + (bin * bin_ns) / 1e9;
  }

  bin(seconds: number): number {
    const { start_unix_ms, bin_ns } = this.report.time;
    return ((seconds - (start_unix_ms ?? 0) / 1e3) * 1e9) / bin_ns;
  }

  /** A bin's beginning as clocks say it: exactly enough to name the same bin elsewhere, as to `export --range`. */
  clock(bin: number, least = 0): string {
    return clock(this.seconds(bin), this.known, Math.max(least, digitsOf(this.report.time.bin_ns / 1e9)));
  }

  binOf(ns: number): number {
    return (ns - this.report.time.start_ns) / this.report.time.bin_ns;
  }

  /** Seconds that were measured in the bins from `first` up to `last`. */
  measured(first: number, last: number): number {
    return this.report.time.measured_ns.subarray(first, last).reduce((sum, ns) => sum + ns, 0) / 1e9;
  }

  /** The bins of the same time as some of another recording's; null, all of them, where none are known to be. */
  sameTime(other: Axis, [first, last]: [number, number]): [number, number] | null {
    if (!this.known || !other.known) return null;
    const [low, high] = [first, last].map((bin) => Math.round(this.bin(other.seconds(bin))));
    return high <= 0 || low >= this.report.time.bins ? null : this.whole(low, high);
  }

  /** The range of whole bins inside of the recording, at least one long; null is all of them. */
  whole(first: number, last: number): [number, number] | null {
    const { bins } = this.report.time;
    const low = Math.min(bins - 1, Math.max(0, Math.floor(Math.min(first, last))));
    const high = Math.min(bins, Math.max(low + 1, Math.ceil(Math.max(first, last))));
    return low === 0 && high === bins ? null : [low, high];
  }
}

/** A part of a recording, to be looked at or compared with: of one CPU, or of all (null), with idle waits or without. */
export class Part {
  readonly bins: [number, number];

  constructor(
    readonly axis: Axis,
    readonly range: [number, number] | null,
    readonly cpu: number | null,
    readonly idle = false,
  ) {
    this.bins = range ?? [0, axis.report.time.bins];
  }

  get ns(): number {
    return (this.bins[1] - this.bins[0]) * this.axis.report.time.bin_ns;
  }

  /** For how long it was measured: what rates are of. */
  get seconds(): number {
    return this.axis.measured(...this.bins);
  }

  /** Its two ends, as people say them. */
  get ends(): string[] {
    return this.bins.map((bin) => this.axis.clock(bin));
  }

  toString(): string {
    const measured = this.seconds * 1e9;
    const part = measured < MISSED * this.ns ? ` (${duration(measured)} of it measured)` : "";
    return `${this.ends.join(" to ")}${this.axis.known ? " UTC" : ""}, ${duration(this.ns)}${part}`;
  }
}
