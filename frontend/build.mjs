// Bundles scripts and styles into dist/, which the control plane serves under /static/. `--watch` rebuilds on change.
import { cp, mkdir, rm } from "node:fs/promises";
import * as esbuild from "esbuild";

const options = {
  entryPoints: { app: "src/app.ts", style: "styles/app.css" },
  outdir: "dist",
  bundle: true,
  minify: true,
  sourcemap: true,
  target: ["es2022", "chrome120", "firefox121", "safari17.2"],
  loader: { ".woff2": "file" },
  assetNames: "fonts/[name]",
  legalComments: "linked",
  logLevel: "info",
};

await rm("dist", { recursive: true, force: true });
await mkdir("dist", { recursive: true });
await cp("static", "dist", { recursive: true });

if (process.argv.includes("--watch")) {
  const context = await esbuild.context({ ...options, minify: false });
  await context.watch();
} else {
  await esbuild.build(options);
}
