import type { Clock } from "../core/runtime/clock.js";
import { channels, type EventName } from "../events.js";

interface Recorded {
  readonly name: EventName;
  readonly at: number;
  readonly message: Record<string, unknown>;
}

/** For the tests of one file: records the named events until the test is over. */
export function recorder(afterEach: (hook: () => void) => void) {
  const cleanUps: (() => void)[] = [];
  afterEach(() => {
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
  });
  return (clock: Clock, ...names: EventName[]): Recorded[] => {
    const events: Recorded[] = [];
    const t0 = clock.now();
    for (const name of names) {
      const listener = (message: unknown) =>
        events.push({ name, at: clock.now() - t0, message: message as Record<string, unknown> });
      channels[name].subscribe(listener);
      cleanUps.push(() => channels[name].unsubscribe(listener));
    }
    return events;
  };
}
