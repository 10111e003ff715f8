import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { within } from "../instant.js";
import type { Verbs, WorkerReply, WorkerRequest } from "./worker.js";

const WORKER = fileURLToPath(new URL("./worker.js", import.meta.url));
const CALL_TIMEOUT_MS = 30_000;
const LAST_WORDS = 2_000;

type Order<V extends keyof Verbs> = Parameters<Verbs[V]>;
type Answer<V extends keyof Verbs> = ReturnType<Verbs[V]>;

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** A worker process, seen from the process that started it. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  #lastId = 0;
  #lastWords = "";

  constructor() {
    // Advanced serialization carries typed arrays as they are.
    this.#child = fork(WORKER, [], {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS);
    });
    this.#child.on("message", (reply: WorkerReply) => this.#settle(reply));
    this.#exited = new Promise((resolve) => {
      this.#child.once("close", (code, signal) => {
        const words = this.#lastWords.trim();
        this.#fail(
          new Error(`a worker ended early with ${code ?? signal}${words && `:\n${words}`}`),
        );
        resolve();
      });
    });
    this.#child.once("error", (error) => this.#fail(error));
  }

  call<V extends keyof Verbs>(verb: V, ...[order]: Order<V>): Answer<V> {
    const id = ++this.#lastId;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      const request: WorkerRequest = { id, verb, order };
      this.#child.send(request, (error) => error && reject(error));
    });
    return within(CALL_TIMEOUT_MS, `a worker's ${verb}`, answer) as Answer<V>;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Kills the worker. It holds nothing that outlives its folder, so it need not end in order. */
  async stop(): Promise<void> {
    this.kill();
    await this.#exited;
  }

  #settle({ id, value, error }: WorkerReply): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(new Error(error));
  }

  #fail(error: Error): void {
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}
