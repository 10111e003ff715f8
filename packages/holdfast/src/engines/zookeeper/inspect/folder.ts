import { randomBytes } from "node:crypto";
import { compileGlob } from "../../../core/acquiring/resource.js";
import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import { SortedNames } from "../../../engine-kit/sorted-names.js";
import { refusal } from "../failure.js";
import { type Location, resourceOf } from "../paths.js";
import type { Sessions } from "../session/sessions.js";
import { CODES } from "../wire/codes.js";
import { getChildren, sync } from "../wire/operations.js";

// A list that takes longer from page to page reads the names again, which costs little at that
// pace.
const KEPT_MS = 10_000;
const LOOKS_A_PAGE = 4_096;

/**
 * Lists the folder of all resources, page by page. ZooKeeper returns all names of a folder or none,
 * so the names are kept from one page to the next. Only the latest reading is kept: it has every
 * name that exists all the time, also for lists that began before it. So lists at the same time
 * share it, and a list that is abandoned leaves nothing of its own.
 */
export class Folder {
  readonly #location: Location;
  readonly #sessions: Sessions;
  /** Part of every cursor. The cursor of another engine may be newer than the names kept here. */
  readonly #id = randomBytes(6).toString("hex");
  #kept: SortedNames | null = null;
  #asked = 0;
  /** The number of the latest reading that was kept. */
  #latest = 0;
  #timer: Timer | null = null;

  constructor(location: Location, sessions: Sessions) {
    this.#location = location;
    this.#sessions = sessions;
  }

  async list(
    { match, cursor, max }: ListFilter,
    until: number,
    view: (resource: string) => Promise<ResourceView>,
  ): Promise<ListPage> {
    const [id, after = null] = cursor === null ? [null] : parted(cursor);
    const kept = id === this.#id ? this.#kept : null;
    const names = kept ?? (await this.#read(until));
    if (kept !== null) this.#keep(kept);
    const { found, last } = this.#page(names, after, match, max);
    // A page without requests would keep the event loop from all other work.
    if (found.length === 0) await new Promise<void>((turned) => setImmediate(turned));
    const views = await Promise.all(found.map(view));
    return {
      views: views.filter(
        ({ holders, waiters, closedMs }) => holders.length + waiters.length + closedMs > 0,
      ),
      cursor: last === null ? null : `${this.#id}/${last}`,
    };
  }

  forget(): void {
    this.#timer?.cancel();
    this.#kept = null;
  }

  /** Some resources that match, and the last name that was looked at; null after the last name. */
  #page(names: SortedNames, after: string | null, match: string, max: number) {
    const glob = compileGlob(match);
    const found: string[] = [];
    let [looks, last] = [0, ""];
    for (const name of names.after(after)) {
      if (found.length === max || looks++ === LOOKS_A_PAGE) return { found, last };
      last = name;
      const resource = resourceOf(this.#location, name);
      if (resource !== null && glob.test(resource)) found.push(resource);
    }
    return { found, last: null };
  }

  async #read(until: number): Promise<SortedNames> {
    const number = ++this.#asked;
    const folder = this.#location.folder || "/";
    const [synced, children] = await this.#sessions.on(
      () => this.#sessions.any(),
      (session) =>
        Promise.all([session.ask(sync(folder), until), session.ask(getChildren(folder), until)]),
    );
    if (synced.err !== CODES.ok) throw refusal(synced.err);
    if (children.value === null && children.err !== CODES.noNode) throw refusal(children.err);
    const names = await SortedNames.of(children.value?.names ?? []);
    if (number > this.#latest) {
      this.#latest = number;
      this.#keep(names);
    }
    return names;
  }

  #keep(names: SortedNames): void {
    this.#kept = names;
    this.#timer?.cancel();
    this.#timer = systemClock.timer(KEPT_MS, () => this.forget(), false);
  }
}

/** Names have no slash, see paths.ts. */
function parted(cursor: string): [id: string, name: string] {
  const slash = cursor.indexOf("/");
  return [cursor.slice(0, slash), cursor.slice(slash + 1)];
}
