// Tests the packed library as a user installs it: in a project without our devDependencies and
// without any peer.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Manifest, publicEntries, readJson, root } from "../repo-files.js";
import { unpackInto } from "./packed.js";

const project = mkdtempSync(join(tmpdir(), "consumer-"));
const subpaths = publicEntries(readJson<Manifest>("packages/holdfast/package.json")).map(
  ([subpath]) => subpath.replace(".", "holdfast"),
);
// The tests of this repository run under a condition that no user has.
const env = { ...process.env, NODE_OPTIONS: "" };
after(() => rmSync(project, { recursive: true }));
layOut();

for (const moduleResolution of ["nodenext", "bundler"]) {
  test(`the types compile without peers under moduleResolution ${moduleResolution}`, () => {
    compile(moduleResolution, consumerSource());
  });
}

test("the compilation reports a name that does not exist", () => {
  const source = 'import { noSuchName } from "holdfast";\nnoSuchName;\n';
  assert.throws(() => compile("nodenext", source), /noSuchName/);
});

test("every subpath can be required and imported without peers", () => {
  for (const load of ["require(name)", "await import(name)"]) {
    const code = `(async () => { for (const name of ${JSON.stringify(subpaths)}) {
      const names = Object.keys(${load});
      if (names.length === 0) throw new Error(name + " exports nothing");
    } })();`;
    runNode(["--no-warnings", "-e", code]);
  }
});

test("a subpath for the simulator cannot be loaded without its condition", () => {
  for (const load of ["require(name)", "await import(name)"]) {
    const code = `(async () => { const name = "holdfast/internal/quorum"; ${load}; })();`;
    assert.throws(() => runNode(["--no-warnings", "-e", code]), /ERR_PACKAGE_PATH_NOT_EXPORTED/);
    runNode(["--no-warnings", "--conditions=holdfast-internal", "-e", code]);
  }
});

function runNode(args: readonly string[]): void {
  execFileSync(process.execPath, args, { cwd: project, env, stdio: "pipe" });
}

function layOut(): void {
  unpackInto(join(project, "node_modules/holdfast"), "packages/holdfast");
  mkdirSync(join(project, "node_modules/@types"));
  for (const name of ["@types/node", "undici-types"]) {
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  }
  writeFileSync(join(project, "package.json"), '{ "type": "commonjs" }');
}

/** Touches every subpath, so that all of their types are read. */
function consumerSource(): string {
  const imports = subpaths.map((name, at) => `import * as m${at} from "${name}";\n`);
  return `${imports.join("")}export const all = [${subpaths.map((_, at) => `m${at}`).join(", ")}];\n`;
}

function compile(moduleResolution: string, source: string): void {
  const module = moduleResolution === "nodenext" ? "nodenext" : "esnext";
  const compilerOptions = {
    ...{ target: "ES2022", lib: ["ES2023"], types: ["node"], module, moduleResolution },
    ...{ strict: true, noEmit: true, skipLibCheck: false },
  };
  writeFileSync(join(project, "consumer.mts"), source);
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["consumer.mts"] }),
  );
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", project], { encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    throw new Error((error as { stdout: string }).stdout);
  }
}
