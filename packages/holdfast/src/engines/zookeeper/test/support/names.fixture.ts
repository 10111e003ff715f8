import { createHash } from "node:crypto";
import { systemClock } from "../../../../core/runtime/clock.js";
import { writeLockRecord } from "../../ttl/lock-record.js";
import { multi } from "../../wire/multi.js";
import { create, type Operation } from "../../wire/operations.js";
import type { ZookeeperTestServer } from "./test-server.fixture.js";

const AT_ONCE = 100;
// A busy machine may stop the server for seconds, which this fixture must outlast.
const TIMEOUT_MS = 60_000;
const NOTHING = Buffer.alloc(0);
const TERMS = {
  mode: "exclusive",
  limit: null,
  tokens: 1,
  ttlMs: 600_000,
  lockDelayMs: 0,
} as const;
const UNCHANGED = { beat: 0, order: 0, index: 0, revoked: false, left: false };

/**
 * Makes holders of name-<first> to name-<last>, many in one request. Nodes of a session would end
 * with it, so these are persistent.
 */
export async function fill(
  testServer: ZookeeperTestServer,
  hold: "session" | "ttl",
  first: number,
  last: number,
) {
  const folder = hold === "session" ? "/holdfast" : "/holdfast-ttl";
  const session = testServer.session({ timeoutMs: TIMEOUT_MS });
  const ask = (operation: Operation<unknown>) =>
    session.ask(operation, systemClock.now() + TIMEOUT_MS);
  await ask(node(folder, NOTHING));
  const write = hold === "session" ? claimed : recorded;
  for (let from = first; from <= last; from += AT_ONCE) {
    const parts: Operation<unknown>[] = [];
    for (let i = from; i < Math.min(from + AT_ONCE, last + 1); i++) {
      parts.push(...write(`${folder}/name-${i}`));
    }
    await ask(multi(parts));
  }
  await session.close();
}

function claimed(path: string): Operation<unknown>[] {
  const data = Buffer.from(JSON.stringify({ ...TERMS, label: "somebody" }));
  return [node(path, NOTHING), node(`${path}/x-${hashOf(path)}-0000000000`, data)];
}

function recorded(path: string): Operation<unknown>[] {
  const hash = hashOf(path);
  const grant = { ...TERMS, ...UNCHANGED, token: "1024", label: "somebody" };
  const record = { grants: { [hash]: grant }, tombstones: new Map<string, number>() };
  return [node(path, writeLockRecord(hash, record)), node(`${path}/${hash}`, NOTHING)];
}

function node(path: string, data: Buffer): Operation<unknown> {
  return create(path, data, "persistent", "open");
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
