import { spawn } from "node:child_process";
import { once } from "node:events";
import { ensure } from "@holdfast/servers";
import { instant } from "../../measuring/instant.js";
import type { Contender, ReleaseLock, Subject } from "../../measuring/suite.js";
import { RESOURCE, sitOut } from "../terms.js";
import { METHODS } from "./methods.js";

/**
 * Starts a program for each turn. It prints its key when it holds, and releases when it is
 * interrupted. The section starts when its line arrives here, and ends just before the signal is
 * sent.
 */
export const etcdctl: Contender = {
  id: "etcdctl",
  name: "etcdctl lock",
  ours: false,
  reach: "host",
  traces: { ...METHODS, key: (resource) => resource },
  sitsOut: {
    ...sitOut(
      ["sequential", "process-waiters"],
      "a program for each turn; its start would be what is measured",
    ),
    renewal: "a program for each lock",
  },
  async open({ url, ttlMs }): Promise<Subject> {
    const setpriv = ensure("setpriv");
    const lock = [ensure("etcdctl"), `--endpoints=${url}`, "lock", `--ttl=${ttlMs / 1e3}`];
    return {
      async acquire(resource = RESOURCE): Promise<ReleaseLock> {
        // Without --pdeathsig it would keep waiting after this process is killed.
        const child = spawn(setpriv, ["--pdeathsig", "KILL", ...lock, resource], {
          env: { ...process.env, ETCDCTL_API: "3" },
          stdio: ["ignore", "pipe", "ignore"],
        });
        const ended = once(child, "close").then(([code]) => {
          throw new Error(`etcdctl ended with ${code}`);
        });
        // Only an end before the printed line is a failure.
        ended.catch(() => {});
        await Promise.race([once(child.stdout, "data"), ended]);
        const instants = { enteredAt: instant(), leftAt: Number.NaN };
        const release = async () => {
          instants.leftAt = instant();
          child.kill("SIGINT");
          await ended.catch(() => {});
        };
        return Object.assign(release, { instants });
      },
    };
  },
};
