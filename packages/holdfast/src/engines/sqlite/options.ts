import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type Known, refuseForeign } from "../../core/input/known-options.js";
import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import type { Binding } from "./file/client.js";

export interface SqliteEngineOptions {
  /**
   * The database file. By default a file in the user's state folder, which all of the user's
   * programs share.
   */
  readonly path?: string;
  /** Opens the file even on a network file system, where SQLite cannot lock files reliably. */
  readonly unsafeAnyFileSystem?: boolean;
  /** Which SQLite to use. The default is Node's own where it has one, else libsql. */
  readonly binding?: Binding;
}

export interface SqliteTerms {
  readonly path: string;
  /** True only for the default path: a folder that the user named must exist. */
  readonly makeFolder: boolean;
  readonly unsafeAnyFileSystem: boolean;
  readonly binding: Binding | undefined;
}

const OPTIONS: Known<SqliteEngineOptions> = {
  ...{ path: true, unsafeAnyFileSystem: true, binding: true },
};

export function resolveSqlite(options: SqliteEngineOptions): SqliteTerms {
  refuseForeign(options, OPTIONS, "sqliteEngine", { option: "path" });
  const { path } = options;
  if (path !== undefined && (typeof path !== "string" || path === "" || path.includes("\0"))) {
    throw new UsageError(`path is ${JSON.stringify(path)}; it must be the path of a file`);
  }
  if (path === ":memory:") {
    throw new UsageError(
      'no other connection would see a lock in ":memory:"; use "memory:" for one process',
    );
  }
  return Object.freeze({
    path: path === undefined ? join(stateFolder(), "locks.db") : resolve(path),
    makeFolder: path === undefined,
    unsafeAnyFileSystem: options.unsafeAnyFileSystem ?? false,
    binding: options.binding,
  });
}

export function optionsFromUrl(url: EngineUrl): SqliteEngineOptions {
  refuseUnknownParams(url, ["unsafeAnyFileSystem"]);
  if (url.hosts.length > 0) {
    const host = url.hosts[0]!.host;
    throw new UsageError(
      `sqlite: takes a path, not a host; write "sqlite:${host}${url.path}" for a file in this folder, ` +
        'or "sqlite:/absolute/path"',
    );
  }
  const any = url.params.get("unsafeAnyFileSystem");
  if (any !== undefined && any !== "true") {
    throw new UsageError(`unsafeAnyFileSystem is "${any}"; it must be "true" or left out`);
  }
  return { ...(url.path === "" ? {} : { path: url.path }), unsafeAnyFileSystem: any === "true" };
}

/** The folder for data that survives a restart and is not a document of the user. */
function stateFolder(): string {
  const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
  if (process.platform === "win32" && LOCALAPPDATA) return join(LOCALAPPDATA, "holdfast");
  if (process.platform === "darwin") {
    return join(homedir(), "Library", "Application Support", "holdfast");
  }
  // The XDG specification says that programs ignore a relative path.
  const base = XDG_STATE_HOME?.startsWith("/")
    ? XDG_STATE_HOME
    : join(homedir(), ".local", "state");
  return join(base, "holdfast");
}
