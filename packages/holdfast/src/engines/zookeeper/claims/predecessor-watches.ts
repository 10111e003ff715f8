import { refusal } from "../failure.js";
import type { QueueMember } from "../layout.js";
import { readRecord } from "../node-record.js";
import { CODES } from "../wire/codes.js";
import type { WatchEvent } from "../wire/watches.js";
import type { ClaimState } from "./claim-state.js";
import type { NodeWatches } from "./node-watches.js";

/** Watches the members before our waiters. */
export class PredecessorWatches {
  readonly #nodeWatches: NodeWatches;
  readonly #onTurn: (claimState: ClaimState, granted: boolean) => void;

  /** onTurn: a member before a waiter left; granted if the waiter waited for nothing else. */
  constructor(
    nodeWatches: NodeWatches,
    onTurn: (claimState: ClaimState, granted: boolean) => void,
  ) {
    this.#nodeWatches = nodeWatches;
    this.#onTurn = onTurn;
  }

  /** False if one of them left before it was watched: then the queue must be read again. */
  async watch(
    claimState: ClaimState,
    before: readonly QueueMember[],
    isLast: boolean,
    until: number,
  ): Promise<boolean> {
    const { resourcePath, path: own, watching } = claimState;
    const paths = before.map(({ name }) => `${resourcePath}/${name}`);
    claimState.lastBefore = null;
    if (!isLast) claimState.unwatchOwn();
    claimState.unwatch(new Set(isLast && own !== null ? [...paths, own] : paths));
    const missing = paths.filter((path) => !watching.has(path));
    const [answers, ownWatched] = await Promise.all([
      Promise.all(missing.map((path) => this.#watchOne(claimState, path, until))),
      isLast ? this.#nodeWatches.verify(claimState, until).catch(() => null) : null,
    ]);
    // The waiter was given up during the requests, so nobody needs its watches.
    if (claimState.state === "leaving") claimState.unwatch();
    const all = answers.every(Boolean) && paths.every((path) => watching.has(path));
    if (all && ownWatched === "held") claimState.lastBefore = paths[0]!;
    return all;
  }

  async #watchOne(claimState: ClaimState, path: string, until: number): Promise<boolean> {
    const { session, watching } = claimState;
    const listener = (event: WatchEvent) => {
      if (!watching.delete(path)) return;
      this.#onTurn(claimState, event === "deleted" && this.#takesOver(claimState, path));
    };
    watching.set(path, listener);
    try {
      const { err, value } = await session.watch(path, until, listener);
      if (value !== null) {
        if (readRecord(value.data).lockDelayMs === 0) claimState.quiet = path;
        return true;
      }
      if (err !== CODES.noNode) throw refusal(err);
      watching.delete(path);
      return false;
    } catch (error) {
      watching.delete(path);
      throw error;
    }
  }

  /**
   * Whether the claim is granted without a request. Nobody can enter before us, so the queue is as
   * it was read: only that one member was before us, and only it could have left a marker. If
   * our own node had been changed earlier, the server would have told us earlier.
   */
  #takesOver(claimState: ClaimState, path: string): boolean {
    const { state, lastBefore, quiet, ownWatched, revoked, path: own } = claimState;
    if (state !== "waiting" || !ownWatched || revoked || own === null) return false;
    if (lastBefore !== path || quiet !== path) return false;
    claimState.state = "granted";
    claimState.unwatch(new Set([own]));
    return true;
  }
}
