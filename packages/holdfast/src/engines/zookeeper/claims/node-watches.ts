import { refusal } from "../failure.js";
import { amended, readRecord } from "../node-record.js";
import { CODES } from "../wire/codes.js";
import { setData } from "../wire/operations.js";
import type { ClaimState } from "./claim-state.js";

const MOST_LOOKS = 20;

/** Watches our own nodes for revocations and deletions. */
export class NodeWatches {
  readonly #onChange: (claimState: ClaimState) => void;

  constructor(onChange: (claimState: ClaimState) => void) {
    this.#onChange = onChange;
  }

  /**
   * Whether a grant still holds for the token with this index. Needs no request while its node is
   * watched. An index greater than the node's is written to the node: the lease was passed on
   * inside the process, and a revocation was for the previous holder.
   */
  async verify(
    claimState: ClaimState,
    until: number,
    index = 0,
  ): Promise<"held" | "revoked" | "missing"> {
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      if (claimState.revoked && index <= claimState.index) return "revoked";
      if (claimState.ownWatched) {
        if (index <= claimState.index) return "held";
        await this.#raise(claimState, index, until);
        continue;
      }
      claimState.watchingOwn ??= this.#watchOwn(claimState, until).finally(() => {
        claimState.watchingOwn = null;
      });
      if (!(await claimState.watchingOwn)) return "missing";
    }
    throw refusal(CODES.badVersion);
  }

  /** Watches a grant's node, and reports a change that came before the watch. */
  async watchGrant(claimState: ClaimState, until: number): Promise<void> {
    if ((await this.verify(claimState, until)) !== "held") this.#onChange(claimState);
  }

  /**
   * Writes the index. The node is read again afterwards, because others may write before or after.
   */
  async #raise(claimState: ClaimState, index: number, until: number): Promise<void> {
    const { session, path, data, version } = claimState;
    const next = amended(data, { index, revoked: false });
    const { err } = await claimState.writing(() =>
      session.ask(setData(path!, next, version), until),
    );
    const expected = err === CODES.ok || err === CODES.badVersion || err === CODES.noNode;
    if (!expected) throw refusal(err);
    claimState.unwatchOwn();
  }

  /** False if the node is gone. */
  async #watchOwn(claimState: ClaimState, until: number): Promise<boolean> {
    const { session, path } = claimState;
    if (path === null) return false;
    claimState.watchOwnFrom = Infinity;
    let changedAlready = false;
    const changed = () => {
      changedAlready = true;
      if (!claimState.watching.delete(path)) return;
      claimState.ownWatched = false;
      // Our own writes are not reported.
      if (!claimState.isWriting) this.#onChange(claimState);
    };
    const { err, value } = await session.watch(path, until, changed);
    if (err === CODES.noNode) return false;
    if (value === null) throw refusal(err);
    const { revoked, index } = readRecord(value.data);
    claimState.revoked = revoked;
    claimState.index = index;
    claimState.data = value.data;
    claimState.version = value.stat.version;
    if (changedAlready) return true;
    claimState.ownWatched = true;
    claimState.watching.set(path, changed);
    if (claimState.state === "leaving") claimState.unwatch();
    return true;
  }
}
