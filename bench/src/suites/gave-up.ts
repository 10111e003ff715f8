/** The contender's own patience ended. An answer, which is counted; any other rejection is a failure. */
export class GaveUp extends Error {
  override readonly name = "GaveUp";
}

/** Asks again as often as the contender gives up, as somebody who needs the lock would. */
export async function acquireRepeatedly<T>(
  acquire: () => Promise<T>,
  onGaveUp: () => void,
  stillWanted: () => boolean,
): Promise<T | null> {
  for (;;) {
    try {
      return await acquire();
    } catch (error) {
      if (!(error instanceof GaveUp)) throw error;
      onGaveUp();
      if (!stillWanted()) return null;
    }
  }
}
