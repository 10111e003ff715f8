import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { FencedOutError } from "../errors.js";

// Reading also registers the token: otherwise a stale writer could write between its successor's
// read and write.
const READ = `
  local token, seen = ARGV[1], redis.call('HGET', KEYS[1], 'token') or '0'
  if tonumber(token) < tonumber(seen) then return { 'stale', seen } end
  redis.call('HSET', KEYS[1], 'token', token)
  return { 'value', redis.call('HGET', KEYS[1], 'value') or '0' }`;
const WRITE = `
  local token, seen = ARGV[1], redis.call('HGET', KEYS[1], 'token') or '0'
  if tonumber(token) < tonumber(seen) then return { 'stale', seen } end
  redis.call('HSET', KEYS[1], 'token', token, 'value', ARGV[2])
  redis.call('RPUSH', KEYS[1] .. ':writes', token .. ' ' .. ARGV[2])
  return { 'written', token }`;

export interface Write {
  readonly token: bigint;
  readonly value: number;
}

/** One number on a separate Redis, which refuses a token smaller than the greatest it has seen. */
export class Register implements Disposable {
  readonly #client: Redis;

  constructor(port: number) {
    this.#client = new Redis(port);
    // A failing test may stop the server first, and must still end.
    this.#client.on("error", () => {});
  }

  async read(resource: string, token: bigint): Promise<number> {
    return Number(await this.#ask(READ, resource, token, []));
  }

  async write(resource: string, token: bigint, value: number): Promise<void> {
    await this.#ask(WRITE, resource, token, [String(value)]);
  }

  /** The accepted writes, in order. */
  async history(resource: string): Promise<Write[]> {
    const lines = await this.#client.lrange(`${resource}:writes`, 0, -1);
    return lines.map((line) => {
      const [token = "", value = ""] = line.split(" ");
      return { token: BigInt(token), value: Number(value) };
    });
  }

  [Symbol.dispose](): void {
    this.#client.disconnect();
  }

  async #ask(script: string, resource: string, token: bigint, args: string[]): Promise<string> {
    const answer = await this.#client.eval(script, 1, resource, String(token), ...args);
    const [word, rest] = answer as [string, string];
    if (word !== "stale") return rest;
    throw new FencedOutError(`token ${token} came after ${rest}`, { resource });
  }
}

/** Every client adds one to what it reads, under a lock: no write is lost, and tokens only rise. */
export function assertIncrements(writes: readonly Write[]): void {
  for (const [i, { token, value }] of writes.entries()) {
    const before = writes[i - 1] ?? { token: 0n, value: 0 };
    assert.ok(token > before.token, `token ${token} was accepted after ${before.token}`);
    assert.equal(value, before.value + 1, `token ${token} overwrote what it had not seen`);
  }
}
