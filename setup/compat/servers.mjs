// The server versions that `npm run test:compat` tests. Each is unpacked into its own folder from a
// later release of Debian, so that nothing that the machine has installed changes.
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { excerpt, runQuietly } from "../progress.mjs";
import { SetupError } from "../script.mjs";
import { stateFolder } from "../workspace.mjs";

const TIMEOUT_MS = 20 * 60_000;

/** The engines that use a kind of server. */
export const KINDS = {
  redis: ["redis", "quorum"],
  postgres: ["postgres"],
  mysql: ["mysql"],
  etcd: ["etcd"],
  zookeeper: ["zookeeper"],
};

/**
 * from: a release of Debian, and its package. programs: the programs to start; the first one tells
 * the version. home: the value of HOLDFAST_SERVER_<kind>. known: by the title of a test that fails
 * on this version, the sentence for the table.
 */
export const VERSIONS = [
  {
    ...{ name: "MySQL 9.7", kind: "mysql", home: "usr", programs: ["usr/sbin/mysqld"] },
    from: ["sid", "mysql-server-core"],
  },
  {
    ...{ name: "MariaDB 11.8", kind: "mysql", home: "usr" },
    programs: ["usr/sbin/mariadbd", "usr/bin/my_print_defaults", "usr/bin/resolveip"],
    from: ["trixie", "mariadb-server"],
  },
  {
    ...{ name: "PostgreSQL 17", kind: "postgres", home: "usr/lib/postgresql/17" },
    programs: ["usr/lib/postgresql/17/bin/postgres", "usr/lib/postgresql/17/bin/initdb"],
    from: ["trixie", "postgresql-17"],
  },
  {
    ...{ name: "PostgreSQL 18", kind: "postgres", home: "usr/lib/postgresql/18" },
    programs: ["usr/lib/postgresql/18/bin/postgres", "usr/lib/postgresql/18/bin/initdb"],
    from: ["sid", "postgresql-18"],
  },
  {
    ...{ name: "Redis 8.0", kind: "redis", home: "usr", programs: ["usr/bin/redis-server"] },
    from: ["trixie", "redis-server"],
  },
  {
    ...{ name: "Valkey 8", kind: "redis", home: "usr", programs: ["usr/bin/valkey-server"] },
    from: ["trixie", "valkey-server"],
  },
  {
    ...{ name: "Valkey 9", kind: "redis", home: "usr", programs: ["usr/bin/valkey-server"] },
    from: ["sid", "valkey-server"],
  },
  {
    ...{ name: "etcd 3.5", kind: "etcd", home: "usr", programs: ["usr/bin/etcd"] },
    from: ["trixie", "etcd-server"],
  },
  {
    ...{ name: "ZooKeeper 3.9", kind: "zookeeper", home: "usr/share/java" },
    programs: ["usr/share/java/zookeeper.jar"],
    from: ["trixie", "zookeeper"],
  },
];

/** The folder of a version. The first call creates it, or throws a SetupError with the reason. */
export async function ensureVersion({ name, programs, from }) {
  const id = name.toLowerCase().replaceAll(" ", "-");
  const folder = resolve(process.env.HOLDFAST_COMPAT ?? join(stateFolder, "compat"), id);
  if (!programs.every((path) => existsSync(join(folder, path)))) {
    mkdirSync(dirname(folder), { recursive: true });
    rmSync(folder, { recursive: true, force: true });
    try {
      await unpack(name, from, folder);
      const missing = programs.find((path) => !existsSync(join(folder, path)));
      if (missing !== undefined) throw new SetupError(`it came without ${basename(missing)}`);
      for (const path of programs) runByOwnLoader(folder, join(folder, path));
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }
  return folder;
}

/** The version that the program prints. A jar has it in its name. */
export async function versionOf(path) {
  const said = path.endsWith(".jar")
    ? basename(realpathSync(path))
    : (await runQuietly("asking", path, ["--version"], { timeoutMs: 30_000 })).output;
  // The path may contain a version number too, so it is removed first.
  const [found] = /\d+\.\d+(\.\d+)?/.exec(said.replaceAll(path, "")) ?? [];
  if (found === undefined) throw new SetupError(`it does not tell its version: ${excerpt(said)}`);
  return found;
}

/** Unpacks a Debian package with its dependencies, without installing them. */
async function unpack(name, [release, debianPackage], folder) {
  // A mirror that is a little behind is good enough.
  const aged = '--aptopt=Acquire::Check-Valid-Until "false"';
  const args = ["--variant=extract", `--include=${debianPackage}`, aged, release, folder];
  const { code, output } = await runQuietly(`unpacking ${name}`, "mmdebstrap", args, {
    timeoutMs: TIMEOUT_MS,
  });
  if (/ENOENT/.test(String(output)) && typeof code !== "number") {
    throw new SetupError("mmdebstrap is missing; apt-get install mmdebstrap brings it");
  }
  if (code !== 0) throw new SetupError(`mmdebstrap failed with ${code}\n${excerpt(output, 10)}`);
  chmodSync(folder, 0o755);
}

/**
 * A program of another release needs that release's C library, which only that release's loader
 * finds. So a script replaces the program and starts it by that loader with `exec`, which keeps the
 * pid.
 */
function runByOwnLoader(folder, path) {
  const libraries = join(folder, "usr/lib/x86_64-linux-gnu");
  const loader = join(libraries, "ld-linux-x86-64.so.2");
  if (!existsSync(loader) || !isProgram(path)) return;
  const real = realpathSync(path);
  const program = real === path ? `${path}.program` : real;
  if (real === path) renameSync(path, program);
  else unlinkSync(path);
  const line = `exec '${loader}' --library-path '${libraries}' --argv0 "$0" '${program}' "$@"`;
  writeFileSync(path, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
}

/** Whether the file is an ELF program, not a script or a jar. */
function isProgram(path) {
  const head = Buffer.alloc(4);
  const file = openSync(path, "r");
  readSync(file, head, 0, 4, 0);
  closeSync(file);
  return head.toString("latin1") === "\x7fELF";
}
