import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "@holdfast/servers";
import { Child } from "../../../../test-support/child.fixture.js";
import { assertIncrements, Register } from "../../../../test-support/fenced-register.fixture.js";
import { TestQuorum } from "./test-quorum.fixture.js";

const PROCESSES = 4;
const MAX_TTL_MS = 1_000;
const TTL_MS = 600;

export interface RotationReport {
  readonly restarts: number;
  readonly grants: number;
  readonly refused: number;
  readonly failed: number;
}

/** Four processes use servers without persistence, one of which is restarted every everyMs. */
export async function rotate(forMs: number, everyMs: number): Promise<RotationReport> {
  await using quorum = await TestQuorum.start(5, { maxTtlMs: MAX_TTL_MS });
  await using store = await startRedis();
  const crew = new Crew(quorum.url, store.port);
  await crew.up;
  let restarts = 0;
  const endsAt = performance.now() + forMs;
  while (performance.now() < endsAt) {
    await sleep(Math.min(everyMs, Math.max(0, endsAt - performance.now())));
    await quorum.servers[restarts++ % 5]!.restart();
  }
  await crew.end();
  using register = new Register(store.port);
  const writes = await register.history("number");
  assertIncrements(writes);
  assert.equal(writes.length, crew.did, "the register has exactly the acknowledged writes");
  expectApart(crew.visits);
  return { restarts, grants: crew.did, refused: crew.refused, failed: crew.failed };
}

/** No two processes held at one instant. */
function expectApart(visits: readonly (readonly [from: number, to: number])[]): void {
  const sorted = [...visits].sort(([a], [b]) => a - b);
  for (const [i, [from]] of sorted.entries()) {
    const before = sorted[i - 1];
    if (before === undefined) continue;
    assert.ok(from > before[1], `two held for ${(before[1] - from).toFixed(3)} ms`);
  }
}

class Crew {
  readonly visits: (readonly [number, number])[] = [];
  did = 0;
  refused = 0;
  failed = 0;
  readonly #children: readonly Child[];
  readonly #over: Promise<unknown>;
  /** Resolves when all processes are connected. */
  readonly up: Promise<void>;
  #isUp: () => void = () => {};
  #count = 0;

  constructor(url: string, registerPort: number) {
    const program = new URL("visits.child.js", import.meta.url);
    const args = [url, String(registerPort), String(TTL_MS)];
    this.#children = Array.from({ length: PROCESSES }, () => new Child(program, args));
    this.up = new Promise((go) => {
      this.#isUp = go;
    });
    this.#over = Promise.all(this.#children.map((child) => this.#listen(child)));
  }

  async end(): Promise<void> {
    for (const child of this.#children) child.say("enough");
    await this.#over;
    for (const child of this.#children) await child.ended();
  }

  async #listen(child: Child): Promise<void> {
    for (let line = await child.line(); line !== null; line = await child.line()) {
      const [what, from, to] = line.split(" ");
      if (what === "up") {
        if (++this.#count === PROCESSES) this.#isUp();
      } else if (what === "in") this.visits.push([Number(from), Number(to)]);
      else if (what === "did") this.did++;
      else if (what === "FENCED_OUT" || what === "LEASE_LOST") this.refused++;
      else if (what === "ENGINE") this.failed++;
      else assert.fail(`a process said ${line}`);
    }
  }
}
