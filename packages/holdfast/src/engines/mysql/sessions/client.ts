import { kindOf, UsageError } from "../../../errors.js";

/** The part of a connection of mysql2's promise API that this engine needs. */
export interface MysqlConnection {
  query(text: string): Promise<readonly [unknown, unknown]>;
  release(): void;
  destroy(): void;
}

/** The part of a pool of mysql2/promise that this engine needs. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

/** A pool of mysql2 with callbacks; promise() gives its promise API. */
export interface MysqlCallbackPool {
  promise(): MysqlPool;
}

export function poolOf(client: MysqlPool | MysqlCallbackPool): MysqlPool {
  if (typeof client === "object" && client !== null) {
    if ("promise" in client && typeof client.promise === "function") return client.promise();
    if ("getConnection" in client) return client;
  }
  const advice =
    typeof client === "string" ? '; init(url) and connect(url) from "holdfast" take a URL' : "";
  throw new UsageError(
    `client must be a pool of mysql2 or of mysql2/promise, got ${kindOf(client)}${advice}`,
  );
}
