import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";

const INDEX = new URL("../../index.js", import.meta.url).href;
const MEMORY = new URL("../../engines/memory/index.js", import.meta.url).href;

interface Outcome {
  /** Null for a process that did not end by itself. */
  readonly code: number | null;
  readonly printed: string;
}

/** Runs a program, and kills it if it has not ended after stayMs. */
function run(program: string, stayMs: number): Promise<Outcome> {
  const script = `
    import { connect, channels } from "${INDEX}";
    import { memoryEngine, MemoryStore } from "${MEMORY}";
    const store = new MemoryStore();
    const locks = await connect(memoryEngine({ store }));
    const other = await connect(memoryEngine({ store }));
    const forEver = { waitMs: Infinity };
    ${program}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  // Time counts from the program's first output, not from the start of a slow process.
  let timer: NodeJS.Timeout | undefined;
  child.stdout.once("data", () => {
    timer = setTimeout(() => child.kill("SIGKILL"), stayMs);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, printed });
    });
  });
}

const STAYS: Record<string, string> = {
  "an acquire that waits for another client": `
    await other.acquire("a");
    console.log("begun");
    await locks.acquire("a", forEver);`,
  "a strict acquire that waits for another client": `
    await other.acquire("a");
    console.log("begun");
    await locks.acquire("a", { ...forEver, fair: "strict" });`,
  "an acquire whose turn depends on a holder of its own process": `
    const opener = await locks.acquire("a");
    const rest = [1, 2].map(() => locks.acquire("a", forEver));
    await opener.release();
    await rest[0];
    console.log("begun");
    await rest[1];`,
};

for (const [what, program] of Object.entries(STAYS)) {
  test(`${what} keeps the process alive`, async () => {
    const { code, printed } = await run(program, 200);
    assert.equal(code, null, `ended by itself: ${printed}`);
  });
}

const ENDS: Record<string, string> = {
  "a held lease": `
    await locks.acquire("a", { ttlMs: 500 });
    await locks.acquire("s", { mode: "shared" });
    await locks.acquire("r", { ttlMs: 500, fair: "strict" });
    console.log("begun");`,
  "a held lease that was renewed by hand": `
    const lease = await locks.acquire("a");
    await lease.renew();
    console.log("begun");`,
  "a wait that was aborted": `
    await other.acquire("a");
    const controller = new AbortController();
    const waiting = locks.acquire("a", { ...forEver, signal: controller.signal }).catch(() => {});
    console.log("begun");
    setTimeout(() => controller.abort(), 20);
    await waiting;`,
  "a wait that close ended": `
    await other.acquire("a");
    const waiting = locks.acquire("a", forEver).catch(() => {});
    console.log("begun");
    await locks.close();
    await waiting;`,
  "everything that is closed": `
    await locks.acquire("a");
    console.log("begun");
    await locks.close();
    await other.close();`,
};

for (const [what, program] of Object.entries(ENDS)) {
  test(`${what} does not keep the process alive`, async () => {
    const { code, printed } = await run(program, 30_000);
    assert.equal(code, 0, `code ${code}: ${printed}`);
  });
}

test("a lost lease that nobody looks at causes no unhandled rejection", async () => {
  const { code, printed } = await run(
    `
    const lease = await locks.acquire("a", { ttlMs: 60, renew: false });
    const shared = await locks.acquire("s", { mode: "shared", ttlMs: 60, maxHoldMs: 20 });
    console.log("begun");
    await new Promise((go) => setTimeout(go, 120));
    if (lease.held || shared.held) throw new Error("still held");
    console.log(lease.signal.reason.code);`,
    60_000,
  );
  assert.equal(code, 0, printed);
  assert.match(printed, /LEASE_LOST/);
});

test("fifty waits on one signal cause no leak warning", async () => {
  const { code, printed } = await run(
    `
    process.on("warning", (warning) => {
      console.log(warning.name);
      process.exitCode = 5;
    });
    await other.acquire("a");
    const controller = new AbortController();
    const { signal } = controller;
    console.log("begun");
    const options = [{ signal }, { signal, fair: "strict" }, { signal, mode: "shared" }];
    const waits = Array.from({ length: 50 }, (_, i) => locks.acquire("a", options[i % 3]));
    setTimeout(() => controller.abort(), 20);
    await Promise.allSettled(waits);
    await new Promise((go) => setTimeout(go, 20));`,
    60_000,
  );
  assert.equal(code, 0, printed);
});
