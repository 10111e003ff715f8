import { mintGrantId } from "../../core/holding/grant-id.js";
import { systemClock } from "../../core/runtime/clock.js";
import type { Engine } from "../../engine.js";
import { altered, alteredQueue, type WrongEngine } from "./altered.js";

async function or<T>(work: Promise<T>, instead: T): Promise<T> {
  try {
    return await work;
  } catch {
    return instead;
  }
}

/** Waits until the backend answers again, and then sends the failed request under a new grantId. */
function resend(inner: Engine, claim: Parameters<Engine["tryAcquire"]>[0]): void {
  const again = async () => {
    const call = { startedAt: systemClock.now(), timeoutMs: 1_000, order: 0 };
    await inner.tryAcquire({ ...claim, grantId: mintGrantId() }, call).catch(later);
  };
  const later = () => {
    systemClock.timer(20, () => void again(), false);
  };
  later();
}

/** Blocks the thread: no timer and no other answer can run. */
function stopProcess(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

export const failureDefects: readonly WrongEngine[] = [
  {
    defect: "a failure of acquire is answered with busy",
    law: "L11.2",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) =>
          or(inner.tryAcquire(claim, call), { kind: "busy", holders: [] }),
      }),
  },
  {
    defect: "a failure of renew is answered with gone",
    law: "L11.2",
    overlay: (inner) =>
      altered(inner, {
        renew: (refs, call) =>
          or(
            inner.renew(refs, call),
            refs.map(() => ({ kind: "gone", why: "unknown" })),
          ),
      }),
  },
  {
    defect: "a failure of release is answered with released",
    law: "L11.2",
    overlay: (inner) =>
      altered(inner, {
        release: (refs, call) =>
          or(
            inner.release(refs, call),
            refs.map(() => ({ kind: "released" })),
          ),
      }),
  },
  {
    defect: "a failure of check is answered with false",
    law: "L11.2",
    overlay: (inner) =>
      altered(inner, { check: (sequence, call) => or(inner.check(sequence, call), false) }),
  },
  {
    defect: "a failure of heartbeat is answered with unknown",
    law: "L11.2",
    overlay: (inner) =>
      alteredQueue(inner, {
        heartbeat: (refs, call) =>
          or(
            inner.queue!.heartbeat(refs, call),
            refs.map(() => ({ kind: "unknown" })),
          ),
      }),
  },
  {
    defect: "a failure is thrown as it came from the client",
    law: "L11.2",
    overlay: (inner) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          try {
            return await inner.tryAcquire(claim, call);
          } catch {
            throw new Error("ECONNRESET");
          }
        },
      }),
  },
  {
    defect: "a helper resends what failed, under another grantId",
    law: "L11.4",
    overlay: (inner) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          try {
            return await inner.tryAcquire(claim, call);
          } catch (error) {
            resend(inner, claim);
            throw error;
          }
        },
      }),
  },
  {
    defect: "a closed engine answers busy",
    law: "L11.1",
    overlay: (inner) => {
      let closed = false;
      return altered(inner, {
        tryAcquire: async (claim, call) =>
          closed ? { kind: "busy", holders: [] } : inner.tryAcquire(claim, call),
        close() {
          closed = true;
          return inner.close();
        },
      });
    },
  },
  {
    defect: "a closed engine never answers",
    law: "L11.1",
    overlay: (inner) => {
      let closed = false;
      return altered(inner, {
        tryAcquire: (claim, call) =>
          closed ? new Promise(() => {}) : inner.tryAcquire(claim, call),
        close() {
          closed = true;
          return inner.close();
        },
      });
    },
  },
  {
    defect: "a second close throws",
    law: "L11.1",
    overlay: (inner) => {
      let closed = false;
      return altered(inner, {
        async close() {
          if (closed) throw new Error("closed already");
          closed = true;
          await inner.close();
        },
      });
    },
  },
  {
    defect: "close waits for ever",
    law: "L12.1",
    overlay: (inner) => altered(inner, { close: () => new Promise(() => {}) }),
  },
  {
    defect: "close leaves a timer that keeps the process alive",
    law: "L12.4",
    overlay: (inner) => {
      systemClock.timer(15_000, () => {}, true);
      return inner;
    },
  },
  {
    defect: "a release leaves no tombstone: a late acquire is granted",
    law: "L11.5",
    overlay: (inner) =>
      altered(inner, {
        release: (refs, call) =>
          inner.release(
            refs.map((ref) => ({ ...ref, tombstoneMs: 0 })),
            call,
          ),
      }),
  },
  ...["L11.13", "L11.14"].map((law) => ({
    defect: "a tombstone lasts for three seconds, however long it was asked for",
    law,
    overlay: (inner: Engine) =>
      altered(inner, {
        release: (refs, call) =>
          inner.release(
            refs.map((ref) => ({ ...ref, tombstoneMs: Math.min(ref.tombstoneMs, 3_000) })),
            call,
          ),
      }),
  })),
  {
    defect: "a tombstone stops a late acquire, and no late enqueue",
    law: "L11.6",
    overlay: (inner) =>
      alteredQueue(inner, {
        async enqueue(claim, call) {
          const answer = await inner.queue!.enqueue(claim, call);
          if (answer.kind !== "gone") return answer;
          return inner.queue!.enqueue({ ...claim, grantId: mintGrantId() }, call);
        },
      }),
  },
  {
    defect: "a tombstone is left only where nothing was found",
    law: "L11.7",
    overlay: (inner) =>
      altered(inner, {
        async release(refs, call) {
          const plain = refs.map((ref) => ({ ...ref, tombstoneMs: 0 }));
          const answers = await inner.release(plain, call);
          return answers.some((answer) => answer.kind === "released")
            ? answers
            : inner.release(refs, call);
        },
      }),
  },
  {
    defect: "a call on a busy resource stops the whole process until the call's time is over",
    law: "L11.12",
    overlay: (inner) =>
      alteredQueue(inner, {
        async enqueue(claim, call) {
          const answer = await inner.queue!.enqueue(claim, call);
          if (answer.kind === "queued") stopProcess(call.timeoutMs);
          return answer;
        },
      }),
  },
  {
    defect: "a tombstone closes the whole resource",
    law: "L11.9",
    overlay: (inner) => {
      const buried = new Set<string>();
      return altered(inner, {
        release(refs, call) {
          for (const ref of refs) if (ref.tombstoneMs > 0) buried.add(ref.resource);
          return inner.release(refs, call);
        },
        tryAcquire: async (claim, call) =>
          buried.has(claim.resource)
            ? { kind: "gone", why: "unknown" }
            : inner.tryAcquire(claim, call),
      });
    },
  },
];
