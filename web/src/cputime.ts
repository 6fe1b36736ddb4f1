// Where CPU time went in a range: shares by CPU and state.

import type { Report } from "./data";

/** A share of 1; and what stands for nothing known. */
export const WHOLE = 250;
export const UNKNOWN = 255;

/** Which part of a range each CPU made no progress for. */
export function stalledShares({ lanes: { cpus, stalled }, time }: Report, [first, last]: [number, number]): Map<number, number> {
  return new Map(
    cpus.map((cpu, place) => {
      const inside = stalled.subarray(place * time.bins + first, place * time.bins + last);
      return [cpu, inside.reduce((sum, one) => sum + one, 0) / WHOLE / (last - first)];
    }),
  );
}

/** A CPU's share of each state and, last, of idle; NaN where nothing is known. */
export function cpuShares({ lanes: { cpus, states, shares }, time }: Report, [first, last]: [number, number]): Map<number, number[]> {
  return new Map(
    cpus.map((cpu, place) => {
      const sums = states.map(() => 0);
      let known = 0;
      for (let bin = first; bin < last; bin++) {
        const at = (place * time.bins + bin) * states.length;
        if (shares[at] === UNKNOWN) continue;
        known++;
        for (let state = 0; state < states.length; state++) sums[state] += shares[at + state];
      }
      const parts = sums.map((sum) => sum / WHOLE / known);
      return [cpu, [...parts, Math.max(0, 1 - parts.reduce((one, other) => one + other, 0))]];
    }),
  );
}
