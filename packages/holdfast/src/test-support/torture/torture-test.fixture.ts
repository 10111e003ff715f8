import { test } from "node:test";
import type { Place } from "./place.fixture.js";
import { MINUTE, MOMENT, torture } from "./torture.fixture.js";

type Open = () => Promise<Place>;

export function testMomentOfFaults(backend: string, open: Open): void {
  test(`a few seconds of faults on ${backend}: no law is broken`, async () => {
    await using place = await open();
    await torture(place, MOMENT);
  });
}

export function testMinuteOfFaults(backend: string, open: Open): void {
  test(`a minute of faults on ${backend}: no law is broken (seed ${MINUTE.seed})`, async () => {
    await using place = await open();
    await torture(place, MINUTE);
  });
}
