// Bundles an application that uses Redis only: the packed library and node-redis are installed, and
// no other client.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { type RedisServer, startRedis } from "@holdfast/servers";
import commonjsPlugin from "@rollup/plugin-commonjs";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { build } from "esbuild";
import { rollup } from "rollup";
import webpack from "webpack";
import { read, root } from "../repo-files.js";
import { unpackInto } from "./packed.js";

const PAGE = "docs/bundling.md";
const TOLERANCE = 0.1;
const run = promisify(execFile);
// Its types describe its CommonJS build, which has the function under `default`.
const commonJs = commonjsPlugin as unknown as typeof commonjsPlugin.default;
// node-redis reads its own version from package.json.
const json = {
  name: "json",
  transform: (code: string, id: string) => (id.endsWith(".json") ? `export default ${code}` : null),
};

/**
 * `connect` loads the client by name at run time. `engine` imports it, so the client is in the
 * bundle.
 */
const APPS = { connect: sampleOf("connect"), engine: sampleOf("engine") };

function sampleOf(app: string): string {
  const [, text] = new RegExp(`^\`\`\`js\\n(// ${app}: [^]*?)^\`\`\`$`, "m").exec(read(PAGE)) ?? [];
  assert.ok(text !== undefined, `${PAGE} shows ${app}`);
  return text;
}

/** The commands of the page: each bundles app.mjs into the file that it names. */
function commandsOf(): readonly (readonly [command: string, outfile: string])[] {
  const [, text = ""] = /^```sh\n(esbuild [\s\S]*?)^```$/m.exec(read(PAGE)) ?? [];
  const commands = text.split(/(?<!\\)\n/).filter(Boolean);
  return commands.map((command) => [command, /--outfile=(\S+)/.exec(command)?.[1] ?? ""]);
}

/** Each writes main.js into a folder and returns the warnings. A failure throws. */
const BUNDLERS: Readonly<
  Record<string, (entry: string, folder: string) => Promise<readonly string[]>>
> = {
  webpack: (entry, folder) =>
    new Promise((resolve, reject) => {
      const output = { path: folder, filename: "main.js" };
      const shape = { mode: "production", target: "node", output } as const;
      webpack({ entry, ...shape, optimization: { minimize: false } }, (error, stats) => {
        if (error !== null || stats === undefined) return reject(error);
        const { errors = [], warnings = [] } = stats.toJson({ errors: true, warnings: true });
        if (errors.length > 0) return reject(new Error(errors.map(sayIt).join("\n")));
        resolve(warnings.map(sayIt));
      });
    }),
  rollup: async (entry, folder) => {
    const warnings: string[] = [];
    const bundle = await rollup({
      input: entry,
      plugins: [nodeResolve({ preferBuiltins: true }), json, commonJs()],
      onwarn: ({ message, id, ids }) => warnings.push(`${id ?? ids?.join()}: ${message}`),
    });
    await bundle.write({ dir: folder, format: "cjs", entryFileNames: "main.js" });
    await bundle.close();
    return warnings;
  },
};

const workspace = mkdtempSync(join(tmpdir(), "bundles-"));
const project = join(workspace, "project");
let server: RedisServer;

before(async () => {
  server = await startRedis();
  unpackInto(join(project, "node_modules/holdfast"), "packages/holdfast");
  symlinkSync(join(root, "node_modules/redis"), join(project, "node_modules/redis"));
  for (const [name, text] of Object.entries(APPS)) {
    writeFileSync(join(project, `${name}.mjs`), text);
  }
});

after(async () => {
  await server?.stop();
  rmSync(workspace, { recursive: true });
});

for (const [bundler, bundle] of Object.entries(BUNDLERS)) {
  for (const app of Object.keys(APPS)) {
    test(`${bundler} bundles ${app} without warnings about unused packages, and the bundle runs`, async () => {
      // A bundle with its client inside runs where nothing is installed.
      const folder = join(
        app === "engine" ? workspace : project,
        `${bundler.replaceAll(" ", "-")}-${app}`,
      );
      mkdirSync(folder);
      const warnings = await bundle(join(project, `${app}.mjs`), folder);
      assert.deepEqual(
        warnings.filter((text) => text.includes("holdfast")),
        [],
      );
      const { stdout } = await run(process.execPath, [join(folder, "main.js")], {
        cwd: folder,
        env: { ...process.env, REDIS_URL: server.url },
        timeout: 30_000,
      });
      assert.equal(stdout, "true\n");
    });
  }
}

test(`${PAGE} has a command for CommonJS, and one for ES modules`, () => {
  assert.deepEqual(
    commandsOf().map(([, outfile]) => outfile),
    ["dist/app.cjs", "dist/app.mjs"],
  );
});

for (const [command, outfile] of commandsOf()) {
  for (const [app, text] of Object.entries(APPS)) {
    test(`the command of ${PAGE} for ${outfile} bundles ${app}, and the bundle runs`, async () => {
      const folder = mkdtempSync(join(workspace, "page-"));
      const [installed, program] = [join(folder, "node_modules"), join(folder, "app.mjs")];
      symlinkSync(join(project, "node_modules"), installed);
      writeFileSync(program, text);
      const PATH = `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH}`;
      const env = { ...process.env, PATH, REDIS_URL: server.url };
      const { stderr } = await run("sh", ["-c", command], { cwd: folder, env });
      assert.doesNotMatch(stderr, /warning|error/i);
      assert.equal(readFileSync(program, "utf8"), text, "the command overwrote the program");
      // A bundle with its client inside runs where nothing is installed.
      if (app === "engine") rmSync(installed);
      const limits = { cwd: folder, env, timeout: 30_000 };
      const { stdout } = await run(process.execPath, [outfile], limits);
      assert.equal(stdout, "true\n");
    });
  }
}

for (const app of Object.keys(APPS)) {
  test(`${PAGE} says how large a bundle with ${app} is`, async () => {
    const outfile = join(workspace, `${app}.min.js`);
    const shape = { bundle: true, minify: true, platform: "node", outfile } as const;
    await build({ entryPoints: [join(project, `${app}.mjs`)], ...shape, external: ["redis"] });
    const kilobytes = statSync(outfile).size / 1_000;
    const said = Number(new RegExp(`^\\| ${app} .*\\| (\\d+) kB \\|$`, "m").exec(read(PAGE))?.[1]);
    assert.ok(
      Math.abs(said / kilobytes - 1) < TOLERANCE,
      `it is ${Math.round(kilobytes)} kB, and the page says ${said} kB`,
    );
  });
}

function sayIt({ message, moduleName }: { message: string; moduleName?: string }): string {
  return `${moduleName}: ${message}`;
}
