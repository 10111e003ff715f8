// Our packages as npm publishes them, for tests that see them as a user does.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../repo-files.js";

/** Packs a package and unpacks it into target. Returns its files, sorted. */
export function unpackInto(target: string, packageFolder: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "packed-"));
  try {
    execFileSync("npm", ["pack", "--pack-destination", folder], {
      cwd: join(root, packageFolder),
      stdio: "pipe",
    });
    const [tarball = ""] = readdirSync(folder);
    mkdirSync(target, { recursive: true });
    // Everything in a tarball of npm's lies in one folder.
    execFileSync("tar", ["-xf", join(folder, tarball), "-C", target, "--strip-components=1"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
  return readdirSync(target, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(target.length + 1))
    .sort();
}
