// The report's data: base64 of gzip of a JSON and the arrays it refers to. See tracer/reports/html/blob.py.

export interface Finding {
  severity: string;
  topic: string;
  what: string;
  who: string;
  next: string;
  anchor: string;
  series: string;
  time_ns: number | null;
  /** Where it is to be looked at until then; else around its time. */
  until_ns: number | null;
}

export interface Mark {
  kind: string;
  start_ns: number;
  end_ns: number;
  text: string;
  /** Of alerts: whether it was told that it is over. */
  over?: boolean;
  cpu?: number | null;
  alert?: { rule: string; title: string; severity: string; next: string; subject: { kind: string; name: string } };
}

/** What was counted on each CPU, by bins that are 2 ** longer of the timeline's. */
export interface CountsByCpu {
  longer: number;
  bins: Uint16Array;
  cpus: Uint16Array;
  slots: Uint16Array;
  counts: Uint32Array;
}

export interface Series {
  name: string;
  part: string;
  help: string;
  /** Where each bin's cells begin; one more than there are bins. */
  starts: Uint32Array;
  slots: Uint16Array;
  counts: Uint32Array | Float64Array;
  /** Null where it isn't told by CPU. */
  by_cpu: CountsByCpu | null;
}

/** What weighed how much when: rows by bin. Bins are 2 ** longer of the timeline's. */
export interface Weights {
  longer: number;
  bins: Uint32Array;
  leaves: Uint32Array;
  weights: Float64Array;
  /** Kinds of idle waits, numbers of `idle_kinds`; null where there are none. */
  idle: Uint8Array | null;
}

export interface Flame extends Weights {
  name: string;
  /** Of stacks; of measured time it's empty. */
  probe: string;
  title: string;
  /** What one sample stands for; 0 where time was measured. */
  sample_ns: number;
  /** From when to when there were stacks; null of measured time. */
  recorded_ns: [number, number] | null;
  names: [string, string, number][];
  modules: string[];
  parents: Uint32Array;
  nodes: Uint32Array;
  /** The same by CPU; null where there was too much to tell apart. */
  by_cpu: (Weights & { cpus: Uint32Array }) | null;
  total: number;
  pruned: number;
}

export interface Entry {
  series: string;
  keys: Record<string, string | number>;
  count: number;
  p50_s: number | null;
  p99_s: number | null;
  max_s: number | null;
}

/** Why a node is looked at, and since when it has been so (null: all the time, or not known). */
export interface Comparison {
  headline: string;
  series: string;
  since_unix_ms: number | null;
  tables: { title: string; heads: string[]; numbers: number[]; rows: string[][]; notes: string[] }[];
}

export interface Report {
  title: string;
  facts: [string, string][];
  /** Whether a part of the node only was traced. */
  filtered: boolean;
  fingerprint: [string, string][];
  headline: string;
  severity: string;
  findings: Finding[];
  normal: [string, string, string][];
  missing: string[];
  quality: { what: string; state: "good" | "bad" | "unknown"; text: string; table?: { title: string; heads: string[]; rows: string[][] } }[];
  /** `measured_ns` is how much of each bin was measured: not what is between intervals, nor pauses of the node. */
  time: { start_unix_ms: number | null; start_ns: number; bin_ns: number; bins: number; measured_ns: Float64Array };
  /** Upper edges in ns by slot; the last one is beyond all. */
  edges: Float64Array;
  series: Series[];
  entries: Entry[];
  lanes: { cpus: number[]; states: string[]; shares: Uint8Array; stalled: Uint8Array };
  marks: Mark[];
  flames: Flame[];
  /** What idle waits are for; the first one is none. `idle_shown` is whether they are shown from the start. */
  idle_kinds: string[];
  idle_shown: boolean;
  dropped: string[];
  /** Of a recording beside another one: settings, the other's value, its own. */
  differences: [string, string, string][];
  /** What a comparison of many nodes says of this one. */
  comparison: Comparison | null;
}

const TYPES: Record<string, (buffer: ArrayBuffer, at: number, length: number) => ArrayLike<number>> = {
  u1: (buffer, at, length) => new Uint8Array(buffer, at, length),
  u2: (buffer, at, length) => new Uint16Array(buffer, at, length),
  u4: (buffer, at, length) => new Uint32Array(buffer, at, length),
  f8: (buffer, at, length) => new Float64Array(buffer, at, length),
};

export async function load(text: string): Promise<Report> {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return JSON.parse(json, (_, value) => {
    if (value === null || typeof value !== "object" || !("at" in value) || !(value.type in TYPES)) return value;
    return TYPES[value.type](buffer, 4 + length + value.at, value.length);
  }) as Report;
}
