// Queues that are too long for every waiter to read.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import type { Claim, Engine, Granted } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { etcdEngine } from "../../index.js";

const ENGINES = 3;
const EACH = 150;
const BEAT_MS = 1_000;
const LONGEST_MS = 60_000;
const TTL_MS = 30_000;

let server: EtcdServer;

before(async () => {
  server = await startEtcd();
});

after(() => server.stop());

function engine(): Engine {
  return etcdEngine({ endpoints: [`127.0.0.1:${server.port}`] });
}

/** A process with many waiters, like core: enqueues, sends heartbeats, and releases its grants. */
class WaitingProcess {
  readonly engine = engine();
  readonly waiting = new Map<string, Claim>();
  readonly #granted: (claim: Claim, token: bigint) => Promise<void>;
  readonly #works: Promise<void>[] = [];
  readonly #beating: Promise<void>;
  #over = false;

  constructor(granted: (claim: Claim, token: bigint) => Promise<void>) {
    this.#granted = granted;
    this.#beating = this.#beat();
    this.engine.queue!.onGrant(({ grantId }, granted) => this.#take(grantId, granted));
  }

  async enqueue(one: Claim): Promise<void> {
    this.waiting.set(one.grantId, one);
    const answer = await this.engine.queue!.enqueue(one, now(30_000));
    if (answer.kind === "granted") this.#take(one.grantId, answer);
  }

  async #beat(): Promise<void> {
    for (;;) {
      await sleep(BEAT_MS);
      if (this.#over) return;
      const refs = [...this.waiting.values()];
      const answers = await this.engine.queue!.heartbeat(refs, now(30_000));
      for (const [i, answer] of answers.entries()) {
        if (answer.kind === "granted") this.#take(refs[i]!.grantId, answer);
      }
    }
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#works);
    await this.#beating;
    await this.engine.close();
  }

  #take(grantId: string, { token }: Granted): void {
    const one = this.waiting.get(grantId);
    if (one === undefined) return;
    this.waiting.delete(grantId);
    this.#works.push(this.#granted(one, token));
  }
}

describe("long queues", { concurrency: 1 }, () => {
  for (const [what, terms, most] of [
    ["an exclusive lock", {}, 1],
    ["a semaphore", { mode: "shared", limit: 10 }, 10],
  ] as const) {
    it(`all waiters for ${what} are granted, never more than ${most} at once`, async () => {
      const resource = `a long queue for ${what}`;
      const tokens: bigint[] = [];
      let holding = 0;
      let highest = 0;
      const processes: WaitingProcess[] = Array.from({ length: ENGINES }, () => {
        const process: WaitingProcess = new WaitingProcess(async (one, token) => {
          tokens.push(token);
          highest = Math.max(highest, ++holding);
          await sleep(1);
          holding--;
          await process.engine.release([{ ...one, tombstoneMs: 0 }], now(30_000));
        });
        return process;
      });
      const first = engine();
      const held = Array.from({ length: most }, () => claim(resource, { ttlMs: TTL_MS, ...terms }));
      for (const one of held) await first.tryAcquire(one, now());
      for (let i = 0; i < EACH; i++) {
        await Promise.all(
          processes.map((process) => process.enqueue(claim(resource, { ttlMs: TTL_MS, ...terms }))),
        );
      }
      const gone = processes[0]!.waiting.values().next().value!;
      processes[0]!.waiting.delete(gone.grantId);
      await processes[0]!.engine.queue!.withdraw(gone, now());
      assert.equal(tokens.length, 0);
      const started = performance.now();
      const released = held.map((one) => ({ ...one, tombstoneMs: 0 }));
      await first.release(released, now());
      while (tokens.length < ENGINES * EACH - 1 && performance.now() - started < LONGEST_MS) {
        await sleep(5);
      }
      assert.equal(tokens.length, ENGINES * EACH - 1);
      assert.ok(highest <= most, `${highest} at once`);
      const rise = tokens.every((token, i) => i === 0 || token > tokens[i - 1]!);
      if (most === 1) assert.ok(rise, "tokens rise");
      await Promise.all(processes.map((process) => process.end()));
      await first.close();
    });
  }
});
