// Bundles the page's script and style, and the licences of what is in them, into the folder given, or into the package's.
import { build } from "esbuild";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const folder = process.argv[2] ?? new URL("../tracer/reports/html/assets", import.meta.url).pathname;

const { metafile } = await build({
  entryPoints: { report: "src/main.ts", theme: "src/theme.ts" },
  outdir: folder,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

const inputs = Object.keys(metafile.inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
const parts = [];
for (const name of [...new Set(inputs.filter(Boolean))].sort()) {
  const root = join("node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const file = (await readdir(root)).find((one) => /^licen[cs]e/i.test(one));
  const text = await readFile(join(root, file), "utf8");
  parts.push(`${name} ${version}, ${license}\n\n${text.replaceAll("\r", "").trim()}\n`);
}
await writeFile(join(folder, "licenses.txt"), parts.join("\n---\n\n"));
