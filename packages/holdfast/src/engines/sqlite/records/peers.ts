import { isOfOtherBoot, isProvenDead } from "../file/host.js";
import { presenceLeft } from "./liveness.js";
import { identityOf, type PeerRow } from "./rows.js";
import type { Tables } from "./statements.js";

/** Shorter than a head's heartbeat, so that each of them asks anew whether the holder lives. */
const PROOF_EVERY_MS = 100;
const MAX_SEEN_ALIVE = 1_000;

/** The engines that use the file: who is there, who is proven dead, and whose bell to ring. */
export class Peers {
  /** Bells to ring once the transaction is committed. */
  readonly rings = new Set<number>();
  readonly #tables: Tables;
  readonly #seenAlive = new Map<string, number>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Says that this engine is there, and where its bell hangs. */
  beat(bell: number | null): void {
    const { boot, pidNamespace, pid, started, frame } = this.#tables.host;
    const { self, now } = this.#tables;
    this.#tables.run("peerBeat", self, boot, pidNamespace, pid, started, bell, frame, now);
  }

  /** Leaves no trace of this engine but the grants that it still holds. */
  leave(): void {
    this.#tables.run("peerLeaveLine", this.#tables.self);
    this.#tables.run("peerForget", this.#tables.self);
  }

  find(peer: string): PeerRow | null {
    return this.#tables.get<PeerRow>("peerFind", peer);
  }

  isDead(peer: string): boolean {
    if (peer === this.#tables.self || this.#wasJustAlive(peer)) return false;
    const row = this.find(peer);
    return row !== null && this.#isProvenDead(row);
  }

  /** The peer of a waiter that is still there: not proven dead, and heard of lately. */
  present(peer: string): PeerRow | null {
    const row = this.find(peer);
    if (row === null || peer === this.#tables.self) return row;
    if (!this.#wasJustAlive(peer) && this.#isProvenDead(row)) return null;
    return presenceLeft(this.#tables, row) > 0 ? row : null;
  }

  ring({ bell }: PeerRow): void {
    if (bell !== null) this.rings.add(bell);
  }

  /** Takes the dead out of all lines, then does `between`, then forgets them. */
  sweep(between: () => void): void {
    const gone = this.#tables.all<PeerRow>("peersAll").filter((peer) => this.#isGone(peer));
    for (const peer of gone) this.#tables.run("peerLeaveLine", peer.id);
    between();
    for (const peer of gone) this.#tables.run("peerForget", peer.id);
  }

  /** Of another boot nothing is proven, so its silence is waited out before it is believed. */
  #isGone(row: PeerRow): boolean {
    const [identity, { host }] = [identityOf(row), this.#tables];
    if (isProvenDead(identity, host)) return true;
    return isOfOtherBoot(identity, host) && presenceLeft(this.#tables, row) <= 0;
  }

  /** Asking the system takes as long as all the rest of a transaction; once in a while is enough. */
  #isProvenDead(row: PeerRow): boolean {
    if (isProvenDead(identityOf(row), this.#tables.host)) return true;
    if (this.#seenAlive.size >= MAX_SEEN_ALIVE) this.#seenAlive.clear();
    this.#seenAlive.set(row.id, this.#tables.now);
    return false;
  }

  #wasJustAlive(peer: string): boolean {
    return this.#tables.now - (this.#seenAlive.get(peer) ?? -Infinity) < PROOF_EVERY_MS;
  }
}
