import { execFileSync } from "node:child_process";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CURATOR_JARS, ensure } from "@holdfast/servers";
import type { Contender, OpenContext } from "../../measuring/suite.js";
import { openForeign } from "../foreign.js";
import { RESOURCE } from "../terms.js";

const PATH = `/${RESOURCE}`;

export const kazoo = peer("kazoo", "kazoo Lock (Python)", () => [
  ...[ensure("kazoo"), source("kazoo-lock.py")],
]);

export const curator = peer("curator", "Curator InterProcessMutex (Java)", () => {
  const jars = CURATOR_JARS.map(ensure);
  const folder = compiled("CuratorLock", jars.join(":"));
  const path = [folder, ...jars].join(":");
  return [ensure("java"), "-Xmx128m", "-XX:+UseSerialGC", "-cp", path, "CuratorLock"];
});

export const peers = [kazoo, curator];

function peer(id: string, name: string, command: () => string[]): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    traces: { sends: ["packets"], key: (resource) => `/${resource}` },
    sitsOut: { renewal: "has nothing to renew but its session, however many locks there are" },
    async open({ url, ttlMs }: OpenContext) {
      const [file, ...args] = command();
      return openForeign(file!, [...args, url, PATH, String(ttlMs / 1e3)]);
    },
  };
}

/** The folder of its class, which is compiled when it is older than its source. */
function compiled(name: string, classPath: string): string {
  const folder = fileURLToPath(new URL("../peers/", import.meta.url));
  const made = join(folder, `${name}.class`);
  if (existsSync(made) && statSync(made).mtimeMs > statSync(source(`${name}.java`)).mtimeMs) {
    return folder;
  }
  // Beside it, then renamed: another process may be doing the same.
  const beside = join(folder, String(process.pid));
  const args = ["-d", beside, "-cp", classPath, source(`${name}.java`)];
  execFileSync(ensure("javac"), args, { stdio: ["ignore", "ignore", "pipe"] });
  renameSync(join(beside, `${name}.class`), made);
  rmSync(beside, { recursive: true });
  return folder;
}

function source(name: string): string {
  return fileURLToPath(new URL(`../../../peers/${name}`, import.meta.url));
}
