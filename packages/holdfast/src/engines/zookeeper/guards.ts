import { refusal } from "./failure.js";
import { readRecord } from "./record.js";
import type { Standing } from "./standing.js";
import { CODES } from "./wire/operations.js";

const MOST_LOOKS = 20;

/** Listens for what befalls our own nodes: a revocation, or somebody who deletes one. */
export class Guards {
  readonly #onChange: (standing: Standing) => void;

  constructor(onChange: (standing: Standing) => void) {
    this.#onChange = onChange;
  }

  /** Whether a grant still stands. Answered without a question where its node is watched. */
  async verify(standing: Standing, until: number): Promise<"held" | "revoked" | "missing"> {
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      if (standing.revoked) return "revoked";
      if (standing.guarded) return "held";
      standing.guarding ??= this.#watchOwn(standing, until).finally(() => {
        standing.guarding = null;
      });
      if (!(await standing.guarding)) return "missing";
    }
    throw refusal(CODES.badVersion);
  }

  /** Listens for changes of a grant's node, and for one that came before. */
  async guard(standing: Standing, until: number): Promise<void> {
    if ((await this.verify(standing, until)) !== "held") this.#onChange(standing);
  }

  /** False when the node is gone. */
  async #watchOwn(standing: Standing, until: number): Promise<boolean> {
    const { session, path } = standing;
    if (path === null) return false;
    standing.guardFrom = Infinity;
    let changedAlready = false;
    const changed = () => {
      changedAlready = true;
      if (!standing.watching.delete(path)) return;
      standing.guarded = false;
      this.#onChange(standing);
    };
    const { err, value } = await session.watch(path, until, changed);
    if (err === CODES.noNode) return false;
    if (value === null) throw refusal(err);
    standing.revoked = readRecord(value.data).revoked;
    if (changedAlready) return true;
    standing.guarded = true;
    standing.watching.set(path, changed);
    if (standing.state === "leaving") standing.unwatch();
    return true;
  }
}
