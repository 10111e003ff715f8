import { refusal } from "../failure.js";
import { amended, readRecord } from "../record.js";
import { CODES, setData } from "../wire/operations.js";
import type { Standing } from "./claim-state.js";

const MOST_LOOKS = 20;

/** Listens for what befalls our own nodes: a revocation, or somebody who deletes one. */
export class Guards {
  readonly #onChange: (standing: Standing) => void;

  constructor(onChange: (standing: Standing) => void) {
    this.#onChange = onChange;
  }

  /**
   * Whether a grant still stands for the holder whose token has this index. Answered without a question
   * where its node is watched. A greater index than the node has is written down: the lease was passed
   * on inside the process, and a revocation was for the holder before.
   */
  async verify(
    standing: Standing,
    until: number,
    index = 0,
  ): Promise<"held" | "revoked" | "missing"> {
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      if (standing.revoked && index <= standing.index) return "revoked";
      if (standing.guarded) {
        if (index <= standing.index) return "held";
        await this.#raise(standing, index, until);
        continue;
      }
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

  /** What it says is found out by reading the node again: somebody may have written before or after. */
  async #raise(standing: Standing, index: number, until: number): Promise<void> {
    const { session, path, data, version } = standing;
    const next = amended(data, { index, revoked: false });
    const { err } = await standing.writing(() => session.ask(setData(path!, next, version), until));
    const expected = err === CODES.ok || err === CODES.badVersion || err === CODES.noNode;
    if (!expected) throw refusal(err);
    standing.unguard();
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
      // What we write ourselves is no news.
      if (!standing.isWriting) this.#onChange(standing);
    };
    const { err, value } = await session.watch(path, until, changed);
    if (err === CODES.noNode) return false;
    if (value === null) throw refusal(err);
    const { revoked, index } = readRecord(value.data);
    standing.revoked = revoked;
    standing.index = index;
    standing.data = value.data;
    standing.version = value.stat.version;
    if (changedAlready) return true;
    standing.guarded = true;
    standing.watching.set(path, changed);
    if (standing.state === "leaving") standing.unwatch();
    return true;
  }
}
