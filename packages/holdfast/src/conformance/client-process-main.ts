import { connect } from "../connect.js";
import type { Lease } from "../core/holding/lease.js";
import { systemClock } from "../core/runtime/clock.js";
import type { Job, Said } from "./client-process.js";

// The program that ClientProcess starts. Like any process, it knows the backend by its url only.

const CHUNK_MS = 15;

function say(said: Said): void {
  process.send?.(said);
}

/** Reads lease.held in a tight loop; a gap between two reads is a pause of the process. */
async function watch(lease: Lease, pauseMs: number): Promise<void> {
  let last = systemClock.now();
  for (;;) {
    const chunkEnd = systemClock.now() + CHUNK_MS;
    while (last < chunkEnd) {
      const now = systemClock.now();
      const held = lease.held;
      if (now - last > pauseMs) return report(lease, held);
      last = now;
    }
    // Renewals need the event loop too.
    await new Promise<void>((go) => setImmediate(go));
  }
}

async function report(lease: Lease, held: boolean): Promise<void> {
  let thrown = "nothing";
  try {
    lease.assertHeld();
  } catch (error) {
    thrown = error instanceof Error ? error.name : String(error);
  }
  const { aborted } = lease.signal;
  say({ says: "paused", held, thrown, aborted, released: await lease.release() });
}

async function main(job: Job): Promise<void> {
  const locks = await connect(job.url);
  if (job.does !== "close" && job.does !== "leave") {
    process.on("disconnect", () => process.exit(1));
  }
  if (job.does === "once") {
    const atLeastMs = job.options.ttlMs ?? 0;
    await locks.once(job.resource, { atMostMs: atLeastMs * 10, atLeastMs }, () => {});
    process.send?.({ says: "ran" } satisfies Said, () => process.exit(0));
    return;
  }
  const acquiring = locks.acquire(job.resource, job.options);
  if (job.does === "wait") say({ says: "waiting" });
  const lease = await acquiring;
  say({ says: "held", token: String(lease.token) });
  if (job.does === "watch") await watch(lease, job.options.ttlMs ?? 0);
  if (job.does === "close") {
    await locks.close();
    say({ says: "closed" });
  }
}

await main(JSON.parse(process.argv[2] ?? "{}") as Job);
