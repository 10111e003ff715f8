import { pause } from "../measuring/instant.js";
import type { Measurement } from "../measuring/measurement.js";
import type { Column, Measures, Scenario } from "../measuring/suite.js";
import { resourceName } from "../measuring/worker/holdings.js";

const LEASES = 10_000;
const TTL_MS = 10_000;
// The shortest ttl that every engine allows.
const QUICK_TTL_MS = 2_000;
// Locks are kept for hours, so the first renewals, which run before the compiler has optimised, do
// not count.
const WARM_TTLS = 1;
// Three renewal intervals of most peers, which renew all locks at about the same time. A window of
// two ttls showed two renewals, although the average is two and a half.
const WATCH_TTLS = 2.4;
// A call to a worker must not take long, so the worker acquires in portions.
const AT_A_TIME = 5_000;

export const RENEWAL_COLUMNS: readonly [Column, ...Column[]] = [
  { key: "calls", title: "commands", kind: "rate" },
  { key: "keepalives", title: "keepalives", kind: "rate" },
  { key: "cpu", title: "client CPU", kind: "percent" },
  { key: "held", title: "still held", kind: "count", better: "more" },
  { key: "lost", title: "lost", kind: "count" },
];

export const renewal: Scenario = {
  id: "renewal",
  title: `${LEASES.toLocaleString("en")} held locks kept renewed`,
  about: `What one process pays for keeping ${LEASES.toLocaleString("en")} locks of ${TTL_MS / 1e3} s alive, and whether the server still has them all.`,
  reach: "process",
  columns: RENEWAL_COLUMNS,
  better: "less",
  rounds: 1,
  measure: (stage) => measureRenewal(stage, LEASES),
};

export async function measureRenewal(stage: Measurement, most: number): Promise<Measures> {
  const leases = Math.min(most, stage.size);
  const ttlMs = stage.quick ? QUICK_TTL_MS : TTL_MS;
  const [worker] = await stage.workers(1, { ttlMs, pipelining: true });
  for (let held = 0; held < leases; ) {
    held = await worker!.call("hold", Math.min(AT_A_TIME, leases - held));
  }
  const { keepsAlive } = stage.contender.traces!;
  const look = async () => ({
    ...(await worker!.call("usage")),
    calls: (await stage.calls({ renewing: true }))!,
    keepalives: keepsAlive && (await stage.requiredServer.calls(keepsAlive)),
  });
  await pause(WARM_TTLS * ttlMs);
  const before = await look();
  await pause(WATCH_TTLS * ttlMs);
  const after = await look();
  const elapsedMs = after.at - before.at;
  const names = Array.from({ length: leases }, (_, i) => resourceName(i));
  const held = await stage.content.held(stage.contender.traces!, names);
  const aSecond = (from: number, to: number) => (to - from) / (elapsedMs / 1e3);
  return {
    calls: aSecond(before.calls, after.calls),
    ...(keepsAlive && { keepalives: aSecond(before.keepalives!, after.keepalives!) }),
    cpu: (100 * (after.cpuMs - before.cpuMs)) / elapsedMs,
    held,
    lost: leases - held,
  };
}
