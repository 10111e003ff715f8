import type { AcquireOptions, Engine } from "holdfast";
import type { Contender, Place, Traces } from "../measuring/suite.js";
import { ourSubject } from "./our-subject.js";

/** An engine of ours, on a server. */
export function holdfast(
  id: string,
  name: string,
  traces: Traces,
  engineOn: (place: Place) => Engine | Promise<Engine>,
  options: AcquireOptions = {},
): Contender {
  return {
    id,
    name,
    ours: true,
    reach: "host",
    traces,
    open: async (place) => ourSubject(await engineOn(place), { ttlMs: place.ttlMs, ...options }),
  };
}
