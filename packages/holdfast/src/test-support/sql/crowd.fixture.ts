// A crowd at two resources, for any SQL database: no claim is lost, all are served, and a lease
// that shares server and process is not affected.
import assert from "node:assert/strict";
import type { Locks } from "../../locks.js";

export async function checkCrowd(open: () => Locks, count: number): Promise<void> {
  const clients = Array.from({ length: 5 }, open);
  const bystander = await clients[0]!.acquire("bystander", { ttlMs: 5_000 });
  const from = performance.now();
  const options = { callTimeoutMs: 60_000, waitMs: 600_000, fair: "strict" } as const;
  const readers = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      clients[i % 5]!.acquire("read", {
        ...options,
        mode: "shared",
        ttlMs: 60_000,
        label: `r${i}`,
      }),
    ),
  );
  const reading = performance.now();
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const semaphore = clients[i % 5]!.semaphore("permits", { permits: 10 });
      const lease = await semaphore.acquire({ ...options, ttlMs: 60_000, label: `w${i}` });
      most = Math.max(most, ++inside);
      inside--;
      await lease.release();
    }),
  );
  const served = performance.now();
  assert.equal(bystander.held, true, "a bystander lost its lease");
  assert.ok(readers.every((lease) => lease.held));
  assert.ok(most <= 10, `${most} held ten permits`);
  await Promise.all(readers.map((lease) => lease.release()));
  const seconds = [reading - from, served - reading, performance.now() - served].map((ms) =>
    (ms / 1_000).toFixed(1),
  );
  console.log(
    `${count} readers in ${seconds[0]} s, ${count} waiters in ${seconds[1]} s, back in ${seconds[2]} s`,
  );
  assert.equal(await bystander.release(), "released");
}
