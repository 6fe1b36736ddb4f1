// Which names a search finds. Expressions come with links, too, and may be made to freeze a page that backtracks: they are
// matched in linear time (RE2), and for no longer than a reader waits.

import { RE2JS } from "re2js";
import type { Flame } from "./data";

const PATIENCE_MS = 1000;
const LONGEST = 500;

export interface Sought {
  /** Of each name of the flame graph, whether it is found. */
  matching: boolean[];
  /** Why the text was searched for as it is; empty where nothing is wrong. */
  wrong: string;
}

/**
 * What a name contains as it is ("[unknown libc.so.6+0x1f]" was copied, and is a set of letters, too) is searched for as
 * it is, all else as a regular expression, or as the text itself where it is none, or one that takes too long.
 */
export function sought(text: string, flame: Flame): Sought {
  if (latest?.text !== text || latest.flame !== flame) latest = { text, flame, found: found(text, flame) };
  return latest.found;
}

/** The picture and the table below it ask the same. */
let latest: { text: string; flame: Flame; found: Sought } | null = null;

function found(text: string, { names }: Flame): Sought {
  const lower = text.toLowerCase();
  const plain = names.map(([name]) => name.toLowerCase().includes(lower));
  if (plain.includes(true)) return { matching: plain, wrong: "" };
  if (text.length > LONGEST) return { matching: plain, wrong: "It is too long for one." };
  try {
    const matching = matched(RE2JS.compile(text, RE2JS.CASE_INSENSITIVE), names);
    return matching ? { matching, wrong: "" } : { matching: plain, wrong: "As one it takes too long." };
  } catch (error) {
    return { matching: plain, wrong: String((error as Error).message).replace(/^error parsing regexp: /, "").replace("`(?i)", "`") };
  }
}

/** Which names match; null where that takes too long. */
function matched(expression: RE2JS, names: Flame["names"]): boolean[] | null {
  const until = performance.now() + PATIENCE_MS;
  const matching = [];
  for (const [name] of names) {
    if (performance.now() > until) return null;
    matching.push(expression.test(name));
  }
  return matching;
}

/** What matches this text and nothing else. */
export const literal = (text: string) => RE2JS.quote(text);
