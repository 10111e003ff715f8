import { emit } from "../../events.js";

/** Work that close() waits for before it takes the engine away. */
export class Background {
  readonly #onSettled: (() => void)[] = [];
  #underWay = 0;

  /** Something that close() waits for has begun; ended() follows, whatever happens. */
  began(): void {
    this.#underWay++;
  }

  ended(): void {
    this.#underWay--;
    if (this.#underWay > 0) return;
    for (const tell of this.#onSettled.splice(0)) tell();
  }

  /** Work that close() waits for, however it ends. */
  track(work: Promise<unknown>): void {
    this.began();
    const end = () => this.ended();
    work.then(end, end);
  }

  /** Work whose failure has no caller to be thrown at, so it becomes an event. */
  run(during: string, resource: string, work: Promise<unknown>): void {
    work.catch((error: unknown) => emit("failed", () => ({ during, error, resource })));
    this.track(work);
  }

  /** Resolves when all work has ended; each piece is bounded by its own timeouts. */
  async settled(): Promise<void> {
    while (this.#underWay > 0) await new Promise<void>((tell) => this.#onSettled.push(tell));
  }
}
