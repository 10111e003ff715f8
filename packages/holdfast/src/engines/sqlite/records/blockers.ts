import type { Mode } from "../../../engine.js";
import type { Blocker, GrantRow } from "./rows.js";
import type { Statements } from "./statements.js";

const FIRST_PAGE = 32;
const LARGEST_PAGE = 1_024;

/**
 * The grants that block a resource; reading removes grants that are over. Pages are read only as
 * far as a caller needs: a claim among thousands of readers need not load all of them.
 */
export class Blockers {
  readonly #statements: Statements;
  readonly #resource: string;
  /** Returns null for a grant that is over, and removes it. */
  readonly #examine: (row: GrantRow) => Blocker | null;
  readonly #loaded: Blocker[] = [];
  #page = FIRST_PAGE;
  #readUpTo = "";
  #isComplete = false;

  constructor(
    statements: Statements,
    resource: string,
    examine: (row: GrantRow) => Blocker | null,
  ) {
    this.#statements = statements;
    this.#resource = resource;
    this.#examine = examine;
  }

  /** The blockers read so far: at least the first page, if there are any. */
  get loaded(): readonly Blocker[] {
    this.atLeast(1);
    return this.#loaded;
  }

  all(): readonly Blocker[] {
    this.atLeast(Infinity);
    return this.#loaded;
  }

  atLeast(count: number): boolean {
    while (!this.#isComplete && this.#loaded.length < count) this.#readOn();
    return this.#loaded.length >= count;
  }

  /** Whether a claim can be granted beside the blockers: the one rule of sharing and counting. */
  fits(mode: Mode, limit: number | null): boolean {
    if (!this.atLeast(1)) return true;
    // All blockers have one mode, because each of them fitted when it was granted.
    if (mode === "exclusive" || this.mode === "exclusive") return false;
    return limit === null || !this.atLeast(limit);
  }

  /** The one mode of all blockers; undefined if there are none. */
  get mode(): Mode | undefined {
    return this.loaded[0]?.row.mode;
  }

  /**
   * Adds a grant that was just made. A grant that a later page will contain must not count twice.
   */
  add(blocker: Blocker): void {
    const isRead = this.#isComplete || blocker.row.grant_id <= this.#readUpTo;
    if (isRead) this.#loaded.push(blocker);
  }

  find(grantId: string): Blocker | null {
    const known = this.loaded.find(({ row }) => row.grant_id === grantId);
    if (known !== undefined || this.#isComplete) return known ?? null;
    const row = this.#statements.get<GrantRow>("grantFind", this.#resource, grantId);
    return row === null ? null : this.#examine(row);
  }

  /** The blocker to which this token belongs. */
  findToken(token: number): Blocker | null {
    const found = this.mode === "shared" ? this.#findShared(token) : this.loaded[0];
    if (!found) return null;
    const { token: first, tokens } = found.row;
    return token >= first && token < first + tokens ? found : null;
  }

  #findShared(token: number): Blocker | null {
    const row = this.#statements.get<GrantRow>("grantOfToken", this.#resource, token);
    return row === null ? null : this.#examine(row);
  }

  #readOn(): void {
    const page = [this.#resource, this.#readUpTo, this.#page] as const;
    const rows = this.#statements.all<GrantRow>("grantsOf", ...page);
    this.#isComplete = rows.length < this.#page;
    this.#readUpTo = rows.at(-1)?.grant_id ?? this.#readUpTo;
    this.#page = Math.min(2 * this.#page, LARGEST_PAGE);
    for (const row of rows) {
      const blocker = this.#examine(row);
      if (blocker !== null) this.#loaded.push(blocker);
    }
  }
}
