// When stacks were recorded: in a close-up that is some seconds of a longer recording.

import type { Axis, Part } from "./axis";
import type { Flame } from "./data";
import { clock } from "./format";

/** First bin with stacks, and one after the last. */
export function recordedBins({ recorded_ns }: Flame, axis: Axis): [number, number] {
  const { bins } = axis.report.time;
  if (!recorded_ns) return [0, bins];
  const [since, until] = recorded_ns.map((ns) => Math.min(bins, Math.max(0, Math.round(axis.binOf(ns)))));
  return [since, until];
}

/** Whether no stacks were recorded in a part. */
export function isUnrecorded(flame: Flame, { axis, bins: [first, last] }: Part): boolean {
  const [since, until] = recordedBins(flame, axis);
  return last <= since || first >= until;
}

/** When stacks were recorded, where that isn't all of a part; "" where it is. */
export function recorded(flame: Flame, { axis, bins: [first, last] }: Part): string {
  const [since, until] = recordedBins(flame, axis);
  if (since <= first && until >= last) return "";
  const when = (bin: number) => `${clock(axis.seconds(bin), axis.known)}${axis.known ? " UTC" : ""}`;
  if (until >= axis.report.time.bins) return `stacks from ${when(since)} on`;
  return since > 0 ? `stacks from ${when(since)} to ${when(until)}` : `stacks until ${when(until)}`;
}
