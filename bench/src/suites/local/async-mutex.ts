import { Mutex } from "async-mutex";
import type { Contender } from "../../measuring/suite.js";

/** A plain mutex of one process: no lease, no token, no other process. */
export const asyncMutex: Contender = {
  id: "async-mutex",
  name: "async-mutex",
  ours: false,
  reach: "process",
  async open() {
    const mutex = new Mutex();
    return {
      acquire: async () => {
        const release = await mutex.acquire();
        return async () => release();
      },
    };
  },
};
